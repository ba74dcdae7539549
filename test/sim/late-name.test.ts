/**
 * A linked file was saved, and only one of its nodes has got that when its writer dies. On another mount that name goes,
 * so that the content is a version of a node that is none of its names there; a name that comes in then, with what was
 * there before, does not take it away.
 */
import { expect, test } from "vitest";
import type { Mount } from "./support/mount.ts";
import { bytesOf, type Program } from "./support/programs.ts";
import { hashOf, treeOf } from "./support/tree.ts";
import { beginTwo, TURNS_MS } from "./support/two-world.ts";

const SIZE = 40;
const NEW = hashOf(bytesOf("new", SIZE));
const ANOTHER = hashOf(bytesOf("another", SIZE));

interface Late {
  /** `a`, these and `d/c` are one file. */
  readonly names: readonly string[];
  /** What beta does when only `a` has the new content. */
  readonly programs: readonly Program[];
  /** Whether it has heard of that; else it is told afterwards. */
  readonly hasHeard: boolean;
  /** What is saved there under `a` is sent before it looks into `d`. */
  readonly isSent?: boolean;
  /** Somebody who knows of no links deletes `a`. */
  readonly isDeleted?: boolean;
  /** Hashes by path, on beta before it can send any content, on both in the end. */
  readonly shown: Readonly<Record<string, string>>;
}

/** Beta looks into `d` only after its programs. */
async function comesInLate({ names, programs, hasHeard, isSent, isDeleted, shown }: Late): Promise<void> {
  const { world, alpha, beta, rules, calls, run, drain, nodes } = await beginTwo();
  const nodeOfA = async () => (await nodes()).find(({ name }) => name === "a");

  await run(alpha, { do: "mkdir", path: "d" });
  await run(alpha, { do: "save", path: "a", size: SIZE }, "old");
  for (const to of [...names, "d/c"]) await run(alpha, { do: "link", path: "a", to });
  await drain(alpha);
  await world.clock.advance(TURNS_MS);
  await world.run(calls(beta).list(""));
  const a = await nodeOfA();

  if (!hasHeard) world.setLag({ path: 0, journal: 10_000, id: 0 });
  rules.choose = ({ method, path }) => (method === "GET" || path.includes(a?.id ?? "?") ? undefined : "failed");
  await run(alpha, { do: "save", path: "a", size: SIZE }, "new");
  for (let waited = 0; (await nodeOfA())?.contentHash !== NEW; waited += 100) {
    if (waited > 30_000) throw new Error("a is never sent");
    await world.clock.advance(100);
  }
  alpha.crash();
  if (hasHeard) await world.clock.advance(3_000);
  rules.choose = ({ method, path }) => {
    const isToA = isSent === true && path.includes(a?.id ?? "?");
    return (method === "PUT" && !isToA) || method === "POST" ? "failed" : undefined;
  };
  for (const program of programs) await run(beta, program, "another");
  if (isDeleted === true) await world.run(world.outside.deleteNode(a?.id ?? "?"));
  await world.clock.advance(12_000);
  await world.run(calls(beta).list("d"));
  await world.clock.advance(1_000);

  const shownOn = async (mount: Mount) => {
    const tree = await world.run(treeOf(calls(mount), { withContent: true }));
    const files = [...tree].filter(([, { kind }]) => kind === "file");
    return Object.fromEntries(files.map(([path, { content }]) => [path, content]));
  };
  expect(await shownOn(beta)).toEqual(shown);
  rules.choose = () => undefined;
  await drain(beta);
  await world.run(alpha.start());
  for (const mount of world.mounts) await drain(mount);
  await world.clock.advance(TURNS_MS);
  for (const mount of world.mounts) expect(await shownOn(mount)).toEqual(shown);
  world.check();
}

const GONE: Program = { do: "unlink", path: "a" };
/** As an editor saves: what was there has a name of its own, and the old name's node is the new file's. */
const BACKED_UP: readonly Program[] = [
  { do: "rename", path: "a", to: "a~" },
  { do: "save", path: "a", size: SIZE },
];

test("removed by the only name that has it, it stays under the others", async () => {
  await comesInLate({ names: ["b"], programs: [GONE], hasHeard: true, shown: { b: NEW, "d/c": NEW } });
});

test("removed before it was known to be new there, it stays under the others", async () => {
  await comesInLate({ names: ["b"], programs: [GONE], hasHeard: false, shown: { b: NEW, "d/c": NEW } });
});

test("moved away from the only name that has it, which is saved anew: it stays where it was moved to", async () => {
  const shown = { a: ANOTHER, "a~": NEW, "d/c": NEW };
  await comesInLate({ names: [], programs: BACKED_UP, hasHeard: true, shown });
});

test("the same when what was saved anew is sent before that", async () => {
  const shown = { a: ANOTHER, "a~": NEW, "d/c": NEW };
  await comesInLate({ names: [], programs: BACKED_UP, hasHeard: true, isSent: true, shown });
});

test("deleted by somebody else by the only name that has it, it stays under the others", async () => {
  await comesInLate({ names: ["b"], programs: [], hasHeard: true, isDeleted: true, shown: { b: NEW, "d/c": NEW } });
});
