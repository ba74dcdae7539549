/** A file of many names is saved elsewhere, and that is heard of name by name. */
import { expect, test } from "vitest";
import { isContentWrite } from "./support/content-write.ts";
import type { Mount } from "./support/mount.ts";
import { beginTwo, TURNS_MS } from "./support/two-world.ts";

const NAMES = 250;
/** Times that a row of it is looked for, a name that is heard of: a few, not one for each of the others. */
const LOOKS = 12;

const rowsOf = ({ process }: Mount) => {
  if (process === undefined) throw new Error("it is down");
  return process.engine.context.metadata;
};

async function begin() {
  let puts = 0;
  const it = await beginTwo({
    onAnswer: (_, request, { status }) => {
      if (isContentWrite(request) && status < 300) puts += 1;
    },
  });
  const { world, alpha, beta, run, calls, drain } = it;
  await run(alpha, { do: "save", path: "n0", size: 20 }, "old");
  for (let name = 1; name < NAMES; name += 1) await run(alpha, { do: "link", path: "n0", to: `n${name}` });
  await drain(alpha);
  expect(await world.run(calls(beta).list(""))).toHaveLength(NAMES);
  await world.clock.advance(TURNS_MS);
  const before = puts;
  /** Nodes that got what was saved since. */
  return { ...it, sent: () => puts - before };
}

/** How often one of its names, or the row of one, was looked at. */
function countLooks(mount: Mount): () => number {
  const { nodes, entries } = rowsOf(mount);
  let looks = 0;
  const { ofEntry } = nodes;
  const { ofInode } = entries;
  nodes.ofEntry = (entry) => {
    looks += 1;
    return ofEntry(entry);
  };
  entries.ofInode = (inode) => {
    const names = ofInode(inode);
    looks += names.length;
    return names;
  };
  return () => looks;
}

test("each of its names is looked at a few times, however many they are", async () => {
  const { world, alpha, beta, run, drain, labelOf } = await begin();
  const looks = countLooks(beta);
  await run(alpha, { do: "save", path: "n0", size: 20 }, "new");
  await drain(alpha);
  await world.clock.advance(10_000);
  expect(await labelOf(beta, `n${NAMES - 1}`)).toBe("new");
  expect(looks()).toBeGreaterThan(NAMES);
  expect(looks()).toBeLessThan(LOOKS * NAMES);
});

const REMOVED = [
  { what: "the gateway has", offline: false },
  { what: "nothing of which was sent", offline: true },
];

test.each(REMOVED)(
  "one name after the other goes of a file that $what: none looks at all the others",
  async (given) => {
    const { world, alpha, run, nodes, drain } = await begin();
    alpha.weather.isOffline = given.offline;
    if (given.offline) await run(alpha, { do: "save", path: "n0", size: 20 }, "new");
    const looks = countLooks(alpha);
    const names = Array.from({ length: NAMES }, (_, name) => `n${name}`);
    for (const path of names) await run(alpha, { do: "unlink", path });
    expect(looks()).toBeLessThan(LOOKS * NAMES);
    alpha.weather.isOffline = false;
    await world.clock.advance(60_000);
    await drain(alpha);
    expect(await nodes()).toEqual([]);
  },
);

test("who saved it goes away half-way: when his turn is over another mount brings the rest, also one that dies of that", async () => {
  const { world, alpha, beta, rules, run, sent, labelOf } = await begin();
  rules.choose = (request) => (isContentWrite(request) && sent() >= NAMES / 2 ? "failed" : undefined);
  await run(alpha, { do: "save", path: "n0", size: 20 }, "new");
  await world.clock.advance(20_000);
  alpha.weather.isOffline = true;
  rules.choose = () => undefined;
  expect(sent()).toBeGreaterThanOrEqual(NAMES / 2);
  expect(sent()).toBeLessThan(NAMES);

  // Its names are marked in slices: it dies after the first.
  const { turns, afterCommit } = rowsOf(beta);
  const { reached } = turns;
  turns.reached = (inode, entry) => {
    reached(inode, entry);
    afterCommit(beta.crash);
  };
  expect(turns.nextEnd()).toBeDefined();
  await world.clock.advance(TURNS_MS);
  expect(beta.process).toBeUndefined();
  await world.run(beta.start());
  await world.clock.advance(20_000);
  expect(sent()).toBe(NAMES);
  expect(await labelOf(beta, `n${NAMES - 1}`)).toBe("new");
  expect(rowsOf(beta).turns.nextEnd()).toBeUndefined();
  world.check();
});
