/**
 * The plan by property: whatever programs and other clients did, whatever was lost on the
 * way, once it is quiet mount and gateway agree, nothing anybody wrote is gone, and at no moment was
 * something replaced that nobody here had taken in. On gateways with all features and without some, and
 * in workspaces with no room but what removals make.
 */
import fc from "fast-check";
import { expect, test } from "vitest";
import { sameValue } from "../../../src/contract/attributes.ts";
import { ALL_FEATURES } from "../../../src/contract/features.ts";
import { type Abilities, createGateway, type Gateway, ROOT } from "./plan-gateway.ts";
import { createMount, type Fate, type Mount } from "./plan-mount.ts";
import { type Choose, createPrograms, pick } from "./plan-programs.ts";
import { scatterGateway, scatterMount } from "./plan-states.ts";
import type { Entry } from "./plan-tree.ts";

/** To look longer, or at one failure again: WSFS_PLAN_RUNS and WSFS_PLAN_SEED. */
const REPEAT = {
  numRuns: Number(process.env.WSFS_PLAN_RUNS ?? 4000),
  seed: Number(process.env.WSFS_PLAN_SEED ?? 1),
};
/** Of a machine that hangs, not of a slow one. */
const LIMIT_MS = Math.max(600_000, REPEAT.numRuns * 100);
const ROUNDS_MAX = 60;
const ALL: Abilities = { ...ALL_FEATURES, references: true, exchanges: true };
const PLAIN: Abilities = { ...ALL, isFull: false, references: false, exchanges: false };
/** A full gateway may refuse exchanges and references. */
const GATEWAYS: readonly Abilities[] = [
  ALL,
  ALL,
  { ...ALL, exchanges: false },
  { ...ALL, references: false },
  { ...ALL, attributes: false },
  PLAIN,
  { ...PLAIN, attributes: false },
];
const FATES: readonly Fate[] = ["answered", "answered", "lost", "answer lost", "late"];

/** The numbers of a list, one after the other; 0 when it is used up. */
function chooser(numbers: readonly number[]): Choose {
  let next = 0;
  return (limit) => (limit === 0 ? 0 : (numbers[next++] ?? 0) % limit);
}

/** Random numbers by seed (mulberry32). */
function generator(seed: number): Choose {
  let state = seed;
  return (limit) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return limit === 0 ? 0 : ((t ^ (t >>> 14)) >>> 0) % limit;
  };
}

function hearAll(mount: Mount, gateway: Gateway, choose: Choose): void {
  const nodes = gateway.nodes();
  while (nodes.length > 0) {
    const [node] = nodes.splice(choose(nodes.length), 1);
    if (node !== undefined) mount.observeNode(node);
  }
  for (const news of gateway.news) {
    if ("deleted" in news && gateway.live(news.deleted) === undefined) {
      mount.observeDeletion(news.deleted, news.revision);
    }
  }
}

/** Nobody changes anything any more: mount and gateway come to agree, in a bounded number of rounds. */
function becomeQuiet(world: World, choose: Choose): void {
  const { mount, gateway } = world;
  for (const key of [...mount.givenUp.keys()]) mount.endGivenUp(key, choose(2) === 1);
  for (let round = 0; round < ROUNDS_MAX; round += 1) {
    hearAll(mount, gateway, choose);
    // By now whatever was on its way has arrived.
    if (round > 0) mount.forgetAbandoned();
    mount.refreshAll();
    const rows = [...mount.rows];
    while (rows.length > 0) {
      const [row] = rows.splice(choose(rows.length), 1);
      if (row !== undefined) mount.turn(row, "answered");
      mount.check();
    }
    if (differences(world).length === 0) return;
  }
  throw new Error(`no agreement: ${differences(world).join("; ")}`);
}

function differences(world: World): string[] {
  const { mount, gateway } = world;
  const found: string[] = [];
  for (const row of mount.rows) {
    const step = mount.advance(row);
    if (step !== undefined) found.push(`${row.id} ${row.entry?.name ?? "(removed)"}: ${JSON.stringify(step)}`);
    else if (mount.rows.has(row)) found.push(...differencesOf(world, row.entry, row.nodeId, row.base?.revision));
  }
  const unknown = gateway.nodes().filter((node) => mount.rowOfNode(node.id) === undefined);
  found.push(...unknown.map((node) => `${node.id} ${node.name} is not known here`));
  if (mount.arrivals.size > 0) found.push(`${mount.arrivals.size} nodes wait for their names`);
  return found;
}

function differencesOf(
  { mount, gateway, features }: World,
  entry: Entry | null,
  nodeId: string | null,
  revision: number | undefined,
): string[] {
  const node = nodeId === null ? undefined : gateway.live(nodeId);
  if (entry === null || node === undefined) return [`${nodeId} ${entry?.name} is on one side only`];
  const { inode } = entry;
  const parent = entry.parent === null ? null : mount.nodeIdOf(entry.parent);
  const isPlaced = parent === node.parentId && entry.name === node.name;
  const isSame = inode.kind === "folder" || (inode.bytes === node.contentHash && inode.hash === node.contentHash);
  const isLike = !features.attributes || sameValue(inode.attributes, node.attributes);
  const isAgreed = isLike && revision === node.revision;
  return isPlaced && isSame && isAgreed
    ? []
    : [`${node.id} ${entry.name} is ${JSON.stringify(inode)}, there ${JSON.stringify(node)}`];
}

/** What programs finished writing and did not remove or replace themselves. */
function lost(mount: Mount, gateway: Gateway): string[] {
  const contents = gateway.contents();
  return [...mount.entries].flatMap(({ inode: { finished } }) =>
    finished === null || contents.has(finished) ? [] : [finished],
  );
}

interface World {
  readonly story: string[];
  readonly gateway: Gateway;
  readonly mount: Mount;
  readonly features: Abilities;
  readonly scopes: { create: boolean; update: boolean; delete: boolean; isTight: boolean };
}

function makeWorld(choose: Choose): World {
  const features = pick(choose, GATEWAYS) ?? ALL;
  const gateway = createGateway(choose(2) === 0 ? "first" : "current", features);
  const folders = [ROOT];
  for (let count = choose(4); count > 0; count -= 1) {
    const made = gateway.theirs.create(pick(choose, folders) ?? ROOT, `f${count}`, null, {});
    if (made !== undefined) folders.push(made.id);
  }
  for (let count = choose(6); count > 0; count -= 1) {
    gateway.theirs.create(pick(choose, folders) ?? ROOT, "abcd"[choose(4)] ?? "a", `first${count}`, { mode: 0o644 });
  }
  const [create, update, refer] = [choose(8) !== 1, choose(8) !== 1, choose(8) !== 1];
  const may = { create, update, refer: update && refer, delete: choose(8) !== 1 };
  const scopes = { ...may, isTight: choose(4) === 1 };
  const story: string[] = [];
  const mount = createMount(gateway, scopes, features, (line) => story.at(-1) !== line && story.push(line));
  return { gateway, mount, features, scopes, story };
}

function finish(world: World, choose: Choose): void {
  Object.assign(world.scopes, { create: true, update: true, refer: true, delete: true });
  becomeQuiet(world, choose);
  expect(lost(world.mount, world.gateway)).toEqual([]);
}

/** A failure tells what happened until then. */
function told(world: World, run: () => void): void {
  try {
    run();
  } catch (error) {
    throw new Error(`${error instanceof Error ? error.message : error}\n${world.story.join("\n")}`, { cause: error });
  }
}

function liveThrough(numbers: readonly number[], seed: number): void {
  const choose = chooser(numbers);
  const world = makeWorld(choose);
  for (const node of world.gateway.nodes()) world.mount.observeNode(node);
  told(world, () => act(world, numbers, choose, seed));
}

function startAnywhere(numbers: readonly number[], seed: number): void {
  const choose = chooser(numbers);
  const world = makeWorld(choose);
  for (const node of world.gateway.nodes()) world.mount.observeNode(node);
  told(world, () => {
    scatterMount(world.mount, world.gateway, choose);
    scatterGateway(world.gateway, choose);
    for (const news of world.gateway.news) world.story.push(`there ${JSON.stringify(news)}`);
    world.mount.check();
    act(world, numbers.slice(100), choose, seed);
  });
}

function act(world: World, numbers: readonly number[], choose: Choose, seed: number): void {
  const { mount, gateway, story } = world;
  const programs = createPrograms(mount, gateway, choose, (line) => story.push(line));
  for (let steps = Math.floor(numbers.length / 4); steps > 0; steps -= 1) {
    const what = choose(16);
    if (what < 5) programs.local();
    else if (what < 8) programs.remote();
    else if (what < 10) programs.hear();
    else if (what < 14) {
      const row = pick(choose, [...mount.rows]);
      if (row !== undefined) mount.turn(row, pick(choose, FATES) ?? "answered");
    } else if (what === 14) mount.refreshAll();
    else if (choose(4) === 1) mount.crash();
    else mount.endGivenUp(pick(choose, [...mount.givenUp.keys()]) ?? "", choose(4) !== 1);
    mount.check();
  }
  programs.closeAll();
  finish(world, generator(seed));
}

const history = fc.array(fc.nat(0xffff), { maxLength: 400, size: "max" });

/** All runs, however long they take: a run that was not made holds nothing. */
function holds(what: string, live: (numbers: readonly number[], seed: number) => void): void {
  const result = fc.check(fc.property(history, fc.nat(), live), REPEAT);
  const times = `${result.numRuns} of ${REPEAT.numRuns} runs`;
  console.log(
    `the plan by property, ${what}: ${times}, WSFS_PLAN_SEED=${REPEAT.seed}, ${result.failed ? "failed" : "held"}`,
  );
  if (result.failed) throw new Error(fc.defaultReportMessage(result) ?? "failed", { cause: result.errorInstance });
  expect(result.numRuns).toBe(REPEAT.numRuns);
}

test(
  "any history of edits, lag, lost answers and crashes ends in agreement, and nothing is lost",
  () => holds("histories", liveThrough),
  LIMIT_MS,
);

test(
  "any three states, reached or not, end in agreement, and nothing is lost",
  () => holds("three states", startAnywhere),
  LIMIT_MS,
);
