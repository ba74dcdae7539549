/** `wsfs undo [PATH]`: takes back the changes of a mount, as far as others have not changed the nodes since. */
import type { Gateway } from "../../client/index.ts";
import { parseMountName } from "../../contract/mount-name.ts";
import { EXIT, Failure } from "../failure.ts";
import type { Values } from "../options.ts";
import { print } from "../service.ts";
import { showTime } from "../table.ts";
import { formatCount, printable } from "../wording.ts";
import { eachOf, showProgress } from "./at-once.ts";
import { isConfirmed, printSome, unconfirmed } from "./confirm.ts";
import { type Paths, pathsOf } from "./entries.ts";
import { awaitShown, settle } from "./settle.ts";
import { isWithin, unlessMissing } from "./target.ts";
import { type Place, type Plan, planUndo, type Skipped, type Step } from "./undo-plan.ts";
import { type Author, type Choice, chooseRange, type Wish } from "./undo-range.ts";
import { differenceTo, runUndo } from "./undo-run.ts";
import { fromOf, whoOf } from "./versions.ts";
import { atWorkspace, requireHistory } from "./workspace.ts";

const OPERATIONS = [
  ...(["getAccount", "getNode", "readJournal", "restoreNode"] as const),
  ...(["listVersions", "getNodeByPath", "patchNode", "deleteNode", "writeReference", "appendJournal"] as const),
];

export function undo(values: Values<"undo">): Promise<number> {
  const { since, last, yes, json } = values;
  if (since !== undefined && last !== undefined) throw new Failure("--since and --last exclude each other", EXIT.usage);
  const word = values.optional.PATH ?? (values["in-workspace"] === undefined ? "." : "/");
  return atWorkspace(values, [word], OPERATIONS, async ({ gateway, mount, paths: [path = "/"] }) => {
    const name = mount?.name ?? parseMountName(values["of-mount"] ?? "");
    if (name === undefined) {
      throw new Failure("which mount's changes? --mount MACHINE:/FOLDER, as wsfs log shows it", EXIT.usage);
    }
    await requireHistory(gateway);
    await settle(mount, [path], values["settle-timeout"]);
    const { account } = await gateway.account.get();
    const author = { mount: name, account: account?.name ?? null };
    const where = pathsOf(gateway);
    const made = await prepareUndo(gateway, author, { path, last, since }, where);
    if (made === undefined) {
      const isOther = values["of-mount"] !== undefined && author.account !== null;
      const looked = `: only changes of ${author.account} are looked for`;
      return nothing(json, 0, isOther ? printable(looked) : "");
    }
    const { plan } = made;
    await printPlan(plan, where, json);
    const less = since === undefined && last === undefined ? "; --since or --last takes back less" : "";
    process.stderr.write(`wsfs: these are the changes from ${made.begin} to ${made.end}${less}\n`);
    if (plan.steps.length === 0 && !made.isBegun) return nothing(json, plan.skipped.length);
    if (made.isBegun) process.stderr.write("wsfs: this undo was begun before; the plan shows the rest of it\n");
    if (!(await isConfirmed(yes, `Take back ${formatCount(plan.steps.length, "change")}?`))) return unconfirmed();
    const { failed, position } = await carryOut(gateway, made, where, json);
    await awaitShown(mount, position, values["settle-timeout"]);
    return failed === 0 ? EXIT.ok : EXIT.failure;
  });
}

const nothing = (json: boolean, skipped: number, why = "") =>
  print(json, { result: { undone: 0, skipped } }, `There is nothing to undo${why}.\n`);

interface Made {
  readonly plan: Plan;
  readonly choice: Choice;
  /** True: the plan continues an undo that was broken off. */
  readonly isBegun: boolean;
  /** The times of the first and the latest change that is taken back. */
  readonly begin: string;
  readonly end: string;
  /** The time of the latest change that is taken back, for names beside taken ones. */
  readonly moment: string;
}

/** Undefined: the mount has made no such change. */
export async function prepareUndo(
  gateway: Gateway,
  author: Author,
  wish: Wish,
  paths: Paths,
): Promise<Made | undefined> {
  const choices = await chooseRange(gateway, author, wish, placesWithin(wish.path, paths));
  if (choices?.begun !== undefined) {
    return { ...(await makePlan(gateway, choices.begun, wish.path, paths)), isBegun: true };
  }
  return choices === undefined
    ? undefined
    : { ...(await makePlan(gateway, choices.next, wish.path, paths)), isBegun: false };
}

/** True if one of the places is the path or lies below it. */
function placesWithin(path: string, paths: Paths) {
  return async (...places: readonly Place[]): Promise<boolean> => {
    if (path === "/") return true;
    const found = await Promise.all(places.map(({ parentId, name }) => paths.of(parentId, name)));
    return found.some((one) => isWithin(one, path));
  };
}

async function makePlan(gateway: Gateway, choice: Choice, path: string, paths: Paths): Promise<Omit<Made, "isBegun">> {
  const { from, to } = choice.range;
  const entries = await gateway.journal.list({ after: from - 1, before: true, pageSize: 1000 }).all();
  const { steps, skipped } = planUndo(entries, choice.range, choice.own);
  const isMeant = placesWithin(path, paths);
  const wanted = new Set<string>();
  await eachOf([...steps], async (step) => {
    if ((await isMeant(step.now, step.target)) && !(await isAsItWas(gateway, step))) wanted.add(step.nodeId);
  });
  await eachOf(skipped, async ({ nodeId, place }) => {
    if (await isMeant(place)) wanted.add(nodeId);
  });
  const timeOf = (at: number) => entries.find(({ position }) => position === at)?.time ?? "";
  const plan = {
    steps: steps.filter(({ nodeId }) => wanted.has(nodeId)),
    skipped: skipped.filter(({ nodeId }) => wanted.has(nodeId)),
  };
  const moment = timeOf(to).slice(0, 19).replace("T", " ").replaceAll(":", ".");
  return { plan, choice, begin: showTime(timeOf(from)), end: showTime(timeOf(to)), moment };
}

/** The journal has the former attributes, not the present ones, so the node is read. */
async function isAsItWas(gateway: Gateway, { nodeId, action, version, attributes }: Step): Promise<boolean> {
  if (action !== "keep" || version !== undefined || attributes === undefined) return false;
  const node = await unlessMissing(gateway.nodes.get(nodeId));
  // The journal may tell of a deletion late: then the step is skipped when it is carried out.
  return node !== undefined && differenceTo(node, attributes) === undefined;
}

async function printPlan({ steps, skipped }: Plan, paths: Paths, json: boolean): Promise<void> {
  if (json) {
    for (const step of steps) process.stdout.write(`${JSON.stringify({ plan: await shownStep(step, paths) })}\n`);
    for (const one of skipped) process.stdout.write(`${JSON.stringify({ skipped: await shownSkipped(one, paths) })}\n`);
    return;
  }
  await printSome(steps, async (step) => {
    const { action, path, from } = await shownStep(step, paths);
    const what = step.version === undefined ? "attributes" : "content";
    if (action === "move") return `move     ${path}, back from ${from}`;
    return `${(action === "keep" ? what : action).padEnd(8)} ${path}${action === "keep" ? ", as before" : ""}`;
  });
  await printSome(skipped, async (one) => {
    const { path, why, by, time } = await shownSkipped(one, paths);
    const who = by == null ? "" : ` by ${[whoOf(by), fromOf(by)].filter(Boolean).join(", ")}`;
    return `skipped  ${path}: ${why}${who}${time === undefined ? "" : `, ${showTime(time)}`}`;
  });
}

async function shownStep({ nodeId, action, now, target, version, attributes }: Step, paths: Paths) {
  const path = await paths.of(target.parentId, target.name);
  return {
    ...{ nodeId, action, path },
    ...(action === "move" ? { from: await paths.of(now.parentId, now.name) } : {}),
    ...(version === undefined ? {} : { version }),
    ...(attributes === undefined ? {} : { attributes }),
  };
}

async function shownSkipped({ nodeId, place, why, by, time }: Skipped, paths: Paths) {
  return { nodeId, path: await paths.of(place.parentId, place.name), why, by, time };
}

async function carryOut(
  gateway: Gateway,
  { plan, choice, moment }: Made,
  paths: Paths,
  json: boolean,
): Promise<{ readonly failed: number; readonly position: number }> {
  const progress = showProgress(plan.steps.length, "taken back");
  const failed: Skipped[] = [];
  let done = 0;
  let position: number;
  try {
    position = await runUndo(
      {
        ...{ gateway, own: choice.own, moment },
        onDone(step, node) {
          done += 1;
          if (json) process.stdout.write(`${JSON.stringify({ done: { nodeId: step.nodeId, path: node.path } })}\n`);
          progress.step();
        },
        onSkipped({ nodeId, now }, why) {
          failed.push({ nodeId, place: now, why });
          progress.step();
        },
      },
      plan.steps,
    );
  } finally {
    progress.end();
  }
  const skipped = plan.skipped.length + failed.length;
  if (json) {
    for (const one of failed) process.stdout.write(`${JSON.stringify({ skipped: await shownSkipped(one, paths) })}\n`);
    process.stdout.write(`${JSON.stringify({ result: { undone: done, skipped } })}\n`);
  } else {
    await printSome(failed, async (one) => {
      const { path, why } = await shownSkipped(one, paths);
      return `skipped  ${path}: ${why}`;
    });
    const rest = skipped === 0 ? "" : `, ${skipped} skipped`;
    process.stdout.write(`${formatCount(done, "change")} taken back${rest}; wsfs undo once more takes that back.\n`);
  }
  return { failed: failed.length, position };
}
