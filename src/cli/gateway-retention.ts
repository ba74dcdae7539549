/** `wsfs gateway policy …` and `wsfs gateway prune`: retention of a local gateway, whether it runs or not. */
import { existsSync } from "node:fs";
import { gatewaySocket, runningGateway } from "../daemon/gateway-record.ts";
import { hasCode } from "../lib/system-error.ts";
import { EXIT, Failure } from "./failure.ts";
import type { Values } from "./options.ts";
import { table, terminalWidth } from "./table.ts";
import { formatCount, formatSize, printable } from "./wording.ts";
import { absolute } from "./working-folder.ts";

type OwnerCalls = import("../gateway/owner-calls.ts").OwnerCalls;
type WorkspacePolicy = import("../gateway/retention/index.ts").WorkspacePolicy;
type PruneReport = import("../gateway/retention/index.ts").PruneReport;

export async function policyShow(values: Values<"gateway policy">): Promise<number> {
  return withOwner(values.data, async (owner) => {
    const policies = await owner.policies(values.workspace);
    if (values.json) for (const policy of policies) printJson(policy);
    else {
      const rows = policies.map(({ workspace, versions, deleted }) => [workspace, versions, deleted]);
      process.stdout.write(table(["WORKSPACE", "VERSIONS", "DELETED"], rows, terminalWidth()));
    }
    return EXIT.ok;
  });
}

export async function policySet(values: Values<"gateway policy set">): Promise<number> {
  const { versions, "deleted-age": deleted, workspace } = values;
  if (versions === undefined && deleted === undefined) {
    throw new Failure("gateway policy set needs --versions, --deleted or both", EXIT.usage);
  }
  return withOwner(values.data, async (owner) => {
    const policy = await owner.setPolicy(workspace, { versions, deleted });
    if (values.json) printJson(policy);
    else process.stdout.write(describePolicy(policy));
    return EXIT.ok;
  });
}

function describePolicy({ workspace, versions, deleted }: WorkspacePolicy): string {
  const gone = deleted === "ever" ? "can be restored for ever" : `can be restored for ${deleted}`;
  return `${printable(workspace)} keeps of the past: ${versions}; deleted files ${gone}\nIt is applied within a day; "wsfs gateway prune" applies it now\n`;
}

export async function gatewayPrune(values: Values<"gateway prune">): Promise<number> {
  const isDry = values["dry-run"];
  return withOwner(values.data, async (owner) => {
    const report = await owner.prune(values.workspace, isDry);
    if (values.json) printJson(report);
    else process.stdout.write(describeReport(report, isDry));
    return EXIT.ok;
  });
}

function describeReport({ workspaces, orphans }: PruneReport, isDry: boolean): string {
  const would = isDry ? "would go" : "gone";
  const lines = workspaces.map(({ workspace, versions, nodes, bytes, blobs }) => {
    const what = `${formatCount(versions, "version")} and ${formatCount(nodes, "deleted node")} ${would}`;
    return `${printable(workspace)}: ${what}, ${formatSize(bytes)}, ${formatCount(blobs, "file")} of the blob store\n`;
  });
  const left = orphans === 0 ? "" : `${formatCount(orphans, "blob")} that nothing refers to ${would}\n`;
  return `${lines.join("")}${left}`;
}

const printJson = (value: unknown) => void process.stdout.write(`${JSON.stringify(value)}\n`);

/** Works through the socket of the gateway that serves the folder. If no gateway runs, it works on the folder. */
async function withOwner(given: string, work: (owner: OwnerCalls) => Promise<number>): Promise<number> {
  const data = await dataFolder(given);
  const running = runningGateway(data);
  const { ProblemError } = await import("../gateway/problems.ts");
  try {
    if (running === undefined) {
      const { withOwnStore } = await import("../gateway/retention/own-store.ts");
      return await withOwnStore(data, (retention) =>
        work({
          policies: async (workspace) => retention.policies(workspace),
          setPolicy: async (workspace, change) => retention.setPolicy(workspace, change),
          prune: (workspace, isDry) => retention.prune({ workspace, isDry }),
        }),
      );
    }
    if (running.hasSocket !== true) {
      throw new Failure(`the gateway of ${given} runs without its socket: end it first, and start it again after`);
    }
    const { askOwner } = await import("../gateway/owner-calls.ts");
    return await work(askOwner(gatewaySocket(data)));
  } catch (cause) {
    if (cause instanceof ProblemError) {
      if (cause.details.field !== undefined) throw new Failure(`--${cause.message}`, EXIT.usage, { cause });
      throw new Failure(cause.message, EXIT.failure, { cause });
    }
    if (hasCode(cause, "ENOENT", "ECONNREFUSED", "ECONNRESET")) {
      throw new Failure(`the gateway of ${given} does not answer: it may just be ending`, EXIT.failure, { cause });
    }
    throw cause;
  }
}

/** Throws a Failure when the folder is not a gateway's. */
export async function dataFolder(given: string): Promise<string> {
  const data = absolute(given);
  const { databasePath } = await import("../gateway/data-folder.ts");
  if (existsSync(databasePath(data))) return data;
  throw new Failure(`--data: ${given} is no folder of a gateway; "wsfs gateway --data ${given}" makes one`);
}
