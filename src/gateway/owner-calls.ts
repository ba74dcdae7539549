/**
 * Requests of the owner of the data folder to the gateway that serves it: retention policies and prunes. They come by
 * its Unix socket only, without a token. This module has both ends: `ownerCalls` answers, `askOwner` asks.
 */
import { type IncomingMessage, request } from "node:http";
import { text } from "node:stream/consumers";
import { z } from "zod";
import { problem } from "../contract/resources.ts";
import { openSocket } from "../lib/socket-address.ts";
import { type GatewayAnswer, type GatewayRequest, jsonAnswer } from "./exchange.ts";
import { check, failed, notFound, ProblemError } from "./problems.ts";
import type { PolicyChange, PruneReport, Retention, WorkspacePolicy } from "./retention/index.ts";

export const OWNER_PREFIX = "/owner/";
const POLICIES = `${OWNER_PREFIX}policies`;
const PRUNE = `${OWNER_PREFIX}prune`;
const BODY_BYTES = 64 * 1024;

const policiesOf = z.strictObject({ workspace: z.string().optional() });
const policyChange = z.strictObject({
  workspace: z.string(),
  versions: z.string().optional(),
  deleted: z.string().optional(),
});
const pruneOf = z.strictObject({ workspace: z.string().optional(), isDry: z.boolean() });

export function ownerCalls(retention: Retention): (request: GatewayRequest) => Promise<GatewayAnswer> {
  async function answer(asked: GatewayRequest): Promise<unknown> {
    const body = async () => (asked.body?.kind === "json" ? asked.body.read(BODY_BYTES) : undefined);
    switch (`${asked.method} ${asked.path}`) {
      case `GET ${POLICIES}`:
        return retention.policies(check(policiesOf, asked.query, "query").workspace);
      case `PATCH ${POLICIES}`: {
        const { workspace, ...change } = check(policyChange, await body(), "body");
        return retention.setPolicy(workspace, change);
      }
      case `POST ${PRUNE}`:
        return retention.prune(check(pruneOf, await body(), "body"));
      default:
        throw notFound(`There is nothing at ${asked.method} ${asked.path}.`);
    }
  }

  return async (asked) => {
    try {
      return jsonAnswer(200, await answer(asked));
    } catch (error) {
      const refusal =
        error instanceof ProblemError ? error : new ProblemError(500, `${failed().message} ${String(error)}`);
      return jsonAnswer(refusal.status, refusal.document);
    }
  };
}

const policy = z.object({ workspace: z.string(), versions: z.string(), deleted: z.string() });
const pruned = z.object({
  ...{ workspace: z.string(), versions: z.number(), nodes: z.number(), bytes: z.number(), blobs: z.number() },
});
const report = z.object({ workspaces: z.array(pruned), orphans: z.number() });

/** The calls of a command: to the gateway that runs, or to the data folder itself. */
export interface OwnerCalls {
  policies(workspace: string | undefined): Promise<readonly WorkspacePolicy[]>;
  setPolicy(workspace: string, change: PolicyChange): Promise<WorkspacePolicy>;
  prune(workspace: string | undefined, isDry: boolean): Promise<PruneReport>;
}

/** Asks the gateway that serves the socket. Rejects with its ProblemError, or with an Error of the connection. */
export function askOwner(socketPath: string): OwnerCalls {
  const ask = async <T extends z.ZodType>(schema: T, method: string, path: string, body?: unknown) =>
    schema.parse(await asked(socketPath, method, path, body));
  const query = (workspace: string | undefined) =>
    workspace === undefined ? "" : `?${new URLSearchParams({ workspace })}`;
  return {
    policies: (workspace) => ask(z.array(policy), "GET", `${POLICIES}${query(workspace)}`),
    setPolicy: (workspace, change) => ask(policy, "PATCH", POLICIES, { workspace, ...change }),
    prune: (workspace, isDry) => ask(report, "POST", PRUNE, { workspace, isDry }),
  };
}

/** Has no time limit: a large prune takes minutes. */
async function asked(socketPath: string, method: string, path: string, body: unknown): Promise<unknown> {
  const place = openSocket(socketPath, process.getuid?.() ?? 0);
  try {
    const headers = { host: "localhost", ...(body === undefined ? {} : { "content-type": "application/json" }) };
    const sent = request({ socketPath: place.path, method, path, headers, agent: false });
    const answered = new Promise<IncomingMessage>((resolve, reject) => {
      sent.once("response", resolve);
      sent.once("error", reject);
    });
    sent.end(body === undefined ? undefined : JSON.stringify(body));
    const answer = await answered;
    const value: unknown = JSON.parse(await text(answer));
    const { statusCode: status = 0 } = answer;
    if (status === 200) return value;
    const { detail = "it does not say why", field } = problem.parse(value);
    throw new ProblemError(status, detail, field === undefined ? {} : { field });
  } finally {
    place.close();
  }
}
