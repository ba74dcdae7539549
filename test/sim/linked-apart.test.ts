/**
 * A linked file is saved on two mounts by names of which each knows its own: the node that is written first is not
 * behind the other, although the other is written later, and nobody writes over it who has not shown it.
 */
import { expect, test } from "vitest";
import type { HttpRequest } from "../../src/contract/http.ts";
import { SEED } from "../support/seed.ts";
import type { Mount } from "./mount.ts";
import { bytesOf, type Program, runProgram } from "./programs.ts";
import type { Fault } from "./transport.ts";
import { hashOf, readFile } from "./tree.ts";
import { createWorld } from "./world.ts";

/** Nothing that waits to see whether somebody else does it waits longer. */
const TURNS_MS = 150_000;
const SIZE = 40;

/**
 * `a` and `d/b` are one file, and beta has not looked into `d`. Alpha makes `a` something else and saves `d/b`, which
 * arrives first of the two; under `a` beta has saved meanwhile. What alpha shows in the root, and the node `a` has.
 */
async function apart(program: Program) {
  let isRefused: (request: HttpRequest) => boolean = () => false;
  const choose = (request: HttpRequest): Fault | undefined => (isRefused(request) ? "failed" : undefined);
  let sent = 0;
  const world = await createWorld({
    seed: SEED,
    mounts: ["alpha", "beta"],
    sabotage: { choose },
    onAnswer: (mount, { method }, { status }) => {
      if (mount.name === "alpha" && method === "PUT" && status < 300) sent += 1;
    },
  });
  const [alpha, beta] = world.mounts;
  if (alpha === undefined || beta === undefined) throw new Error("two mounts");
  const calls = ({ process }: Mount) => {
    if (process === undefined) throw new Error("down");
    return process.kernel;
  };
  const run = (mount: Mount, what: Program, label: string) => world.run(runProgram(calls(mount), what, label));
  const drain = async (mount: Mount) => {
    const drained = mount.process?.engine.drain({ settle: true, signal: new AbortController().signal });
    expect(await world.run(drained ?? Promise.reject(new Error("down")))).toEqual({ drained: true, left: [] });
  };
  const nodeOfA = async () => {
    const { items } = await world.run(world.outside.listFolder(world.workspace.root));
    return items.find(({ name }) => name === "a");
  };

  await run(alpha, { do: "mkdir", path: "d" }, "");
  await run(alpha, { do: "save", path: "a", size: SIZE }, "old");
  await run(alpha, { do: "link", path: "a", to: "d/b" }, "");
  await drain(alpha);
  await world.clock.advance(TURNS_MS);
  await world.run(calls(beta).list(""));
  const before = await nodeOfA();

  alpha.weather.isOffline = true;
  await run(alpha, program, "another");
  await run(alpha, { do: "save", path: "d/b", size: SIZE }, "mine");
  await run(beta, { do: "save", path: "a", size: SIZE }, "theirs");
  await drain(beta);
  sent = 0;
  isRefused = ({ method, path }) => method !== "GET" && sent === 0 && path.includes(before?.id ?? "?");
  alpha.weather.isOffline = false;
  for (let waited = 0; sent === 0; waited += 100) {
    if (waited > 60_000) throw new Error("d/b is never sent");
    await world.clock.advance(100);
  }
  await drain(alpha);
  await world.clock.advance(TURNS_MS);

  const shown: Record<string, string> = {};
  for (const path of ["a", "d/b"]) {
    const text = (await world.run(readFile(calls(alpha), path))).toString("latin1");
    shown[path] = text.slice(0, text.indexOf(";"));
  }
  const names = await world.run(calls(alpha).list(""));
  world.check();
  const after = await nodeOfA();
  return { before, after, shown, names };
}

const THEIRS = hashOf(bytesOf("theirs", SIZE));

test("a name that is another file here shows what somebody else saved under it, and keeps it", async () => {
  const { before, after, shown, names } = await apart({ do: "replace", path: "a", size: SIZE });
  expect(after).toMatchObject({ id: before?.id, contentHash: THEIRS });
  expect(shown).toEqual({ a: "theirs", "d/b": "mine" });
  expect(names).toContainEqual(expect.stringMatching(/^a \(conflict/));
});

test("a name that was removed here comes back with what somebody else saved under it", async () => {
  const { before, after, shown } = await apart({ do: "unlink", path: "a" });
  expect(after).toMatchObject({ id: before?.id, contentHash: THEIRS });
  expect(shown).toEqual({ a: "theirs", "d/b": "mine" });
});
