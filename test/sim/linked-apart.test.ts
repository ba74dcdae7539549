/**
 * A linked file is saved on two mounts by names of which each knows its own: the node that is written first is not
 * behind the other, although the other is written later, and nobody writes over it who has not shown it.
 */
import { expect, test } from "vitest";
import { isContentWrite } from "./support/content-write.ts";
import { bytesOf, type Program } from "./support/programs.ts";
import { hashOf } from "./support/tree.ts";
import { beginTwo, TURNS_MS } from "./support/two-world.ts";

const SIZE = 40;

/**
 * `a` and `d/b` are one file, and beta has not looked into `d`. Alpha makes `a` something else and saves `d/b`, which
 * arrives first of the two; under `a` beta has saved meanwhile. What alpha shows in the root, and the node `a` has.
 */
async function apart(program: Program) {
  let sent = 0;
  const { world, alpha, beta, rules, calls, labelOf, run, drain, nodes } = await beginTwo({
    onAnswer: (mount, request, { status }) => {
      if (mount.name === "alpha" && isContentWrite(request) && status < 300) sent += 1;
    },
  });
  const nodeOfA = async () => (await nodes()).find(({ name }) => name === "a");

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
  rules.choose = ({ method, path }) =>
    method !== "GET" && sent === 0 && path.includes(before?.id ?? "?") ? "failed" : undefined;
  alpha.weather.isOffline = false;
  for (let waited = 0; sent === 0; waited += 100) {
    if (waited > 60_000) throw new Error("d/b is never sent");
    await world.clock.advance(100);
  }
  await drain(alpha);
  await world.clock.advance(TURNS_MS);

  const shown: Record<string, string> = {};
  for (const path of ["a", "d/b"]) shown[path] = await labelOf(alpha, path);
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
