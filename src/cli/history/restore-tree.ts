/**
 * `wsfs restore PATH --at TIME`: brings a file, or a folder with all below it, back to a moment. It shows a plan first.
 */
import { randomUUID } from "node:crypto";
import type { Gateway } from "../../client/index.ts";
import { EXIT, Failure } from "../failure.ts";
import type { Values } from "../options.ts";
import { print } from "../service.ts";
import { showTime } from "../table.ts";
import { formatCount } from "../wording.ts";
import { showProgress } from "./at-once.ts";
import { isConfirmed, printSome, unconfirmed } from "./confirm.ts";
import { awaitShown, settle } from "./settle.ts";
import { findNode } from "./target.ts";
import { atWorkspace, requireHistory } from "./workspace.ts";

const OPERATIONS = ["getNodeByPath", "restoreTree"] as const;

export function restoreAt(values: Values<"restore">, at: Date): Promise<number> {
  const { exact, yes, json, "file-version": version } = values;
  if (version !== undefined) throw new Failure("--version and --at exclude each other", EXIT.usage);
  return atWorkspace(values, [values.positionals.FILE], OPERATIONS, async ({ gateway, mount, paths: [path = "/"] }) => {
    await requireHistory(gateway);
    await settle(mount, [path], values["settle-timeout"]);
    const moment = showTime(at.toISOString());
    const isBack = `${path} is as it was at ${moment}${exact ? "" : ", beside newer files"}`;
    const isNotBack = `${path} is not as it was at ${moment}`;
    const node = await findNode(gateway, path, at);
    if (node === undefined) throw new Failure(`${path} was not there at ${moment}`);
    const items = await itemsOf(gateway, node.id, at, exact);
    const planned = items.filter(({ action }) => action !== "skip");
    if (json) process.stdout.write(items.map((item) => `${JSON.stringify({ plan: item })}\n`).join(""));
    else await printSome(items, describeItem);
    if (planned.length === 0) {
      const skipped = items.length;
      const text = skipped === 0 ? isBack : `${isNotBack}, and nothing was changed: ${skipped} skipped`;
      print(json, { result: { done: 0, skipped } }, `${text}.\n`);
      return exitCode(skipped);
    }
    const count = formatCount(planned.length, "change");
    if (!(await isConfirmed(yes, `Back to ${moment}, by ${count}?`))) return unconfirmed();
    const progress = showProgress(planned.length, "made");
    let done = 0;
    let skipped = 0;
    let position: number | undefined;
    try {
      // A restoration that was broken off is continued by the next request for the same moment.
      const idempotencyKey = `restore-${randomUUID()}`;
      const restored = gateway.nodes.restoreTree(node.id, at, { exact, idempotencyKey });
      for (;;) {
        const next = await restored.next();
        if (next.done === true) {
          position = next.value;
          break;
        }
        const item = next.value;
        if (item.action === "skip") skipped += 1;
        else done += 1;
        if (json) process.stdout.write(`${JSON.stringify({ [item.action === "skip" ? "skipped" : "done"]: item })}\n`);
        progress.step();
      }
    } finally {
      progress.end();
    }
    const changes = formatCount(done, "change");
    const text = skipped === 0 ? `${isBack}: ${changes}` : `${isNotBack} in all: ${changes}, ${skipped} skipped`;
    print(json, { result: { done, skipped } }, `${text}.\n`);
    await awaitShown(mount, position, values["settle-timeout"]);
    return exitCode(skipped);
  });
}

/** A skipped item is not as it was, so the command has failed. */
const exitCode = (skipped: number) => (skipped === 0 ? EXIT.ok : EXIT.failure);

type Item = Awaited<ReturnType<typeof itemsOf>>[number];

async function itemsOf(gateway: Gateway, nodeId: string, at: Date, exact: boolean) {
  const items = [];
  for await (const item of gateway.nodes.restoreTree(nodeId, at, { exact, plan: true })) items.push(item);
  return items;
}

function describeItem({ action, path, from, reason }: Item): string {
  const more = action === "move" ? `, back from ${from}` : reason === undefined ? "" : `: ${reason}`;
  return `${action.padEnd(10)} ${path}${more}`;
}
