/**
 * Undo after any history of two mounts: what one did is taken back, whatever the order of its moves; what the other changed
 * since stays; one that is broken off anywhere goes on, and an undo is undone. Against a gateway's core in this process.
 */
import fc from "fast-check";
import { expect, test } from "vitest";
import { pathsOf } from "../../src/cli/history/entries.ts";
import { prepareUndo } from "../../src/cli/history/undo.ts";
import type { Step } from "../../src/cli/history/undo-plan.ts";
import { UNDONE } from "../../src/cli/history/undo-range.ts";
import { runUndo } from "../../src/cli/history/undo-run.ts";
import { connect, type Gateway, type Node, RemoteError, staticToken } from "../../src/client/index.ts";
import type { Transport } from "../../src/contract/http.ts";
import { formatTime, HOUR_MS, timeFromMilliseconds } from "../../src/lib/time.ts";
import { createCoreTransport } from "../support/core-transport.ts";
import { createTestCore, type TestCore } from "../support/gateway-core.ts";
import { SEED } from "../support/seed.ts";

const OURS = "desk:/folder";
const OTHERS = "laptop:/folder";
const NAMES = ["a", "b", "c"];

const number = fc.nat(1000);
const change = fc.record({
  what: fc.constantFrom("folder", "file", "write", "move", "move", "delete", "delete", "attributes", "exchange"),
  node: number,
  folder: number,
  name: fc.constantFrom(...NAMES),
});
type Change = typeof change extends fc.Arbitrary<infer T> ? T : never;

function mountOf(
  core: TestCore,
  mount: string,
  transport: Transport = createCoreTransport(() => core.gateway),
): Gateway {
  const credentials = staticToken(core.token());
  return connect({
    baseUrl: "http://gateway",
    credentials,
    workspace: core.workspace.id,
    mount,
    transport,
    retries: false,
  });
}

const all = (gateway: Gateway) => gateway.nodes.list({ path: "/", recursive: true, pageSize: 1000 }).all();

/** Refused where it cannot be: then it is no change. */
async function make(gateway: Gateway, root: string, { what, node: which, folder: where, name }: Change, n: number) {
  const nodes = await all(gateway);
  const folders = [root, ...nodes.filter(({ kind }) => kind === "folder").map(({ id }) => id)];
  const files = nodes.filter(({ kind }) => kind === "file");
  const pick = <T>(from: readonly T[], at: number): T | undefined => from[at % Math.max(1, from.length)];
  const folder = pick(folders, where) ?? root;
  const node = pick(nodes, which);
  const file = pick(files, which);
  const other = pick(nodes, where);
  const attributes = { mode: 0o600 + (n % 8), mtime: `${n}.000000000` };
  try {
    if (what === "folder") await gateway.nodes.createFolder(folder, name, { attributes });
    if (what === "file") await gateway.files.create(folder, name, `content ${n}`, { attributes });
    if (what === "write" && file !== undefined) await gateway.files.write(file.id, `written ${n}`, { attributes });
    // Every other move sets attributes too, in the same request.
    const along = n % 2 === 0 ? {} : { attributes: { mode: n % 512 } };
    if (what === "move" && node !== undefined)
      await gateway.nodes.update(node.id, { parentId: folder, name, ...along });
    if (what === "delete" && node !== undefined) await gateway.nodes.delete(node.id);
    if (what === "attributes" && node !== undefined)
      await gateway.nodes.update(node.id, { attributes: { mode: n % 512 } });
    if (what === "exchange" && node !== undefined && other !== undefined)
      await gateway.nodes.exchange(node.id, other.id);
  } catch (error) {
    if (!(error instanceof RemoteError) || !["conflict", "changed", "invalid"].includes(error.code)) throw error;
  }
}

/** What an undo brings back: which nodes there are, where, with which bytes and attributes. */
async function treeOf(gateway: Gateway) {
  const shown = ({ id, path, contentHash, attributes }: Node) => ({ id, path, contentHash, attributes });
  return (await all(gateway)).map(shown).sort((a, b) => (a.id < b.id ? -1 : 1));
}

async function undoOnce(gateway: Gateway, since: Date | undefined) {
  const paths = pathsOf(gateway);
  const made = await prepareUndo(gateway, { mount: OURS, account: null }, { path: "/", last: undefined, since }, paths);
  const failed: string[] = [];
  if (made === undefined) return { skipped: [], failed, isBegun: false };
  const onSkipped = ({ nodeId }: { nodeId: string }, why: string) => failed.push(`${nodeId} ${why}`);
  await runUndo({ gateway, own: made.choice.own, moment: made.moment, onDone() {}, onSkipped }, made.plan.steps);
  return { skipped: made.plan.skipped, failed, isBegun: made.isBegun };
}

/** Ours before the moment, then what is to be taken back. */
async function begin(before: readonly Change[]) {
  const core = createTestCore();
  const ours = mountOf(core, OURS);
  let n = 0;
  const doAll = async (gateway: Gateway, changes: readonly Change[]) => {
    for (const one of changes) {
      n += 1;
      await make(gateway, core.workspace.root, one, n);
    }
  };
  await doAll(ours, before);
  const { asOf } = await ours.journal.list({ pageSize: 1 }).page(1);
  await core.clock.advance(HOUR_MS);
  const hasChanged = async () => (await ours.journal.list({ after: asOf, pageSize: 1 }).page(1)).items.length > 0;
  return { core, ours, doAll, hasChanged };
}

const changes = (maxLength: number) => fc.array(change, { minLength: 1, maxLength });

test("folders that were in each other, and names that went round", async () => {
  const one = (what: Change["what"], node: number, folder: number, name = "a"): Change => ({
    what,
    node,
    folder,
    name,
  });
  const before = [one("file", 0, 0), one("folder", 0, 0, "b"), one("folder", 0, 93, "b"), one("folder", 0, 0)];
  const after = [
    one("exchange", 164, 0),
    one("exchange", 33, 242),
    one("folder", 0, 233, "c"),
    one("exchange", 0, 467),
  ];
  const { ours, doAll } = await begin(before);
  const then = await treeOf(ours);
  await doAll(ours, after);
  expect(await undoOnce(ours, undefined)).toEqual({ skipped: [], failed: [], isBegun: false });
  expect(await treeOf(ours)).toEqual(then);
});

test("a file without a time of its own has the one that it had", async () => {
  const { core, ours } = await begin([]);
  const file = await ours.files.create(core.workspace.root, "a", "before");
  await core.clock.advance(HOUR_MS);
  await ours.files.write(file.id, "after");
  await core.clock.advance(HOUR_MS);
  expect(await undoOnce(ours, undefined)).toEqual({ skipped: [], failed: [], isBegun: false });
  const { contentHash, attributes } = await ours.nodes.get(file.id);
  expect([contentHash, attributes]).toEqual([
    file.contentHash,
    { mtime: formatTime(timeFromMilliseconds(Date.parse(file.modifiedAt))) },
  ]);
});

test("attributes that another mount has changed since the plan was made stay, and so does the content", async () => {
  const { core, ours } = await begin([]);
  const made = await ours.nodes.createFolder(core.workspace.root, "d");
  const file = await ours.files.create(core.workspace.root, "a", "before");
  await core.clock.advance(HOUR_MS);
  await ours.nodes.update(made.id, { attributes: { mode: 0o700 } });
  await ours.files.write(file.id, "after");
  const theirs = mountOf(core, OTHERS);
  const wish = { path: "/", last: undefined, since: undefined };
  const plan = await prepareUndo(ours, { mount: OURS, account: null }, wish, pathsOf(ours));
  await theirs.nodes.update(made.id, { attributes: { mode: 0o750 } });
  await theirs.nodes.update(file.id, { attributes: { mode: 0o640 } });
  const now = await treeOf(ours);
  const skipped: string[] = [];
  const { choice, moment, plan: { steps = [] } = {} } = plan ?? expect.unreachable("nothing to undo");
  const onSkipped = ({ now: { name } }: Step, why: string) => skipped.push(`${name}: ${why}`);
  await runUndo({ gateway: ours, own: choice.own, moment, onDone() {}, onSkipped }, steps);
  const why = "it was changed from elsewhere at this moment";
  expect([skipped.sort(), await treeOf(ours)]).toEqual([[`a: ${why}`, `d: ${why}`], now]);
});

test("a node whose deletion by another mount the journal has not told yet is skipped", async () => {
  const { core, ours } = await begin([]);
  const made = await ours.nodes.createFolder(core.workspace.root, "d");
  await core.clock.advance(HOUR_MS);
  await ours.nodes.update(made.id, { attributes: { mode: 0o700 } });
  const inner = createCoreTransport(() => core.gateway);
  let isDeleted = false;
  const late: Transport = {
    async send(request) {
      if (!isDeleted && request.path === `/v1/nodes/${made.id}`) {
        isDeleted = true;
        await mountOf(core, OTHERS).nodes.delete(made.id);
      }
      return inner.send(request);
    },
    close: inner.close,
  };
  const { failed } = await undoOnce(mountOf(core, OURS, late), undefined);
  expect([isDeleted, failed]).toEqual([true, [expect.stringContaining("it was changed from elsewhere")]]);
});

test("what only this mount has changed is as it was, and an undo is undone", async () => {
  await fc.assert(
    fc.asyncProperty(changes(12), changes(16), async (before, after) => {
      const { ours, doAll, hasChanged } = await begin(before);
      const then = await treeOf(ours);
      await doAll(ours, after);
      const now = await treeOf(ours);
      fc.pre(await hasChanged());
      expect(await undoOnce(ours, undefined)).toEqual({ skipped: [], failed: [], isBegun: false });
      expect(await treeOf(ours)).toEqual(then);
      expect(await undoOnce(ours, undefined)).toEqual({ skipped: [], failed: [], isBegun: false });
      expect(await treeOf(ours)).toEqual(now);
    }),
    { numRuns: 60, seed: SEED },
  );
}, 120_000);

test("broken off after any request, with its answer or without, it goes on", async () => {
  await fc.assert(
    fc.asyncProperty(changes(8), changes(12), fc.nat(40), fc.boolean(), async (before, after, last, isAnswerLost) => {
      const { core, ours, doAll, hasChanged } = await begin(before);
      const then = await treeOf(ours);
      await doAll(ours, after);
      fc.pre(await hasChanged());
      const inner = createCoreTransport(() => core.gateway);
      let left = last;
      const broken: Transport = {
        async send(request) {
          left -= 1;
          if (left < 0 && !isAnswerLost) throw new RemoteError("offline", "cut off", { isUnsent: true });
          const answer = await inner.send(request);
          if (left < 0) throw new RemoteError("offline", "cut off");
          return answer;
        },
        close: inner.close,
      };
      const isBroken = await undoOnce(mountOf(core, OURS, broken), undefined).then(
        () => false,
        (error: unknown) => {
          if (error instanceof RemoteError && error.code === "offline") return true;
          throw error;
        },
      );
      // The last one says that it has ended: then there is nothing to go on with.
      const hasEnded = (await ours.journal.list().all()).some(({ kind }) => kind === UNDONE);
      if (isBroken && !hasEnded) expect(await undoOnce(ours, undefined)).toMatchObject({ skipped: [], failed: [] });
      expect(await treeOf(ours)).toEqual(then);
    }),
    { numRuns: 60, seed: SEED },
  );
}, 120_000);

test("what another mount has changed since stays as it is", async () => {
  await fc.assert(
    fc.asyncProperty(changes(8), changes(8), changes(4), changes(4), async (before, first, theirs, second) => {
      const { core, ours, doAll } = await begin(before);
      await doAll(ours, first);
      const { asOf } = await ours.journal.list({ pageSize: 1 }).page(1);
      await doAll(mountOf(core, OTHERS), theirs);
      await doAll(ours, second);
      const last = new Map((await ours.journal.list({ after: asOf }).all()).map((entry) => [entry.nodeId, entry]));
      const revisions = new Map((await all(ours)).map(({ id, revision }) => [id, revision]));
      const { skipped } = await undoOnce(ours, undefined);
      const after = new Map((await all(ours)).map(({ id, revision }) => [id, revision]));
      for (const [id, { by }] of last) {
        if (by?.mount !== OTHERS) continue;
        expect(after.get(id), id).toBe(revisions.get(id));
      }
      for (const { nodeId, by } of skipped) expect([last.get(nodeId)?.by?.mount, by?.mount]).toEqual([OTHERS, OTHERS]);
    }),
    { numRuns: 60, seed: SEED },
  );
}, 120_000);
