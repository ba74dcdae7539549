/** Whose turn it is: nothing waits for ever, for others or for its own next change. On the virtual clock. */
import { expect, test } from "vitest";
import type { HttpRequest } from "../../src/contract/http.ts";
import { BULK_BYTES } from "../../src/vfs/lanes.ts";
import { begin, there } from "./one-world.ts";
import { runProgram } from "./programs.ts";

const TIMEOUT = { timeout: 120_000 };
/** Less than the quiet that is waited for; see mount.ts. */
const AGAIN_MS = 250;
/** More than requests may be in flight. */
const BIG_FILES = 20;
/** The quiet that is waited for, and a request. */
const SOON_MS = 2_000;

const isUploadOf = (name: string, { method, path }: HttpRequest) =>
  method === "POST" && path.startsWith("/v1/files/") && path.includes(name);

test("a file that is saved again before it was quiet is sent all the same, at its maximum age", TIMEOUT, async () => {
  const { world, mount, save, asked, content } = await begin(true);
  const { debounceMs, maximumAgeMs } = mount.process?.engine.context.settings ?? { debounceMs: 0, maximumAgeMs: 0 };
  expect(AGAIN_MS).toBeLessThan(debounceMs);
  const isArrived = async () => (await there(world)).has("a");
  const saves = Math.ceil((3 * maximumAgeMs) / AGAIN_MS);
  for (let saved = 1; saved <= saves; saved += 1) {
    await save("a", `save ${saved}`);
    await world.clock.advance(AGAIN_MS);
    if (saved * AGAIN_MS > maximumAgeMs + debounceMs) expect(await isArrived()).toBe(true);
  }
  // Once each maximum age, not once each save.
  expect(asked.length).toBeGreaterThanOrEqual(2);
  expect(asked.length).toBeLessThan(saves / 2);
  expect(await content("a")).toContain(`save ${saves}`);
});

test("while big files take all the places they may, a small one goes at once and no ls waits", TIMEOUT, async () => {
  const { world, calls, rules, save, asked, names } = await begin(true);
  // Of the big ones no answer comes until the client gives up.
  rules.choose = (request) => (isUploadOf("big", request) ? "silent-before" : "none");
  const big = Array.from({ length: BIG_FILES }, (_, index) => `big-${index}`);
  for (const path of big) await world.run(runProgram(calls(), { do: "save", path, size: BULK_BYTES }, path));
  await world.clock.advance(SOON_MS);
  for (let round = 0; round < 10; round += 1) {
    await save(`small-${round}`);
    await world.clock.advance(SOON_MS);
    expect(asked.filter((line) => line.includes(`small-${round}`))).toHaveLength(1);
    const begun = world.clock.elapsed();
    expect(await names()).toHaveLength(BIG_FILES + round + 1);
    await world.run(calls().stat("big-0"));
    expect(world.clock.elapsed()).toBe(begun);
  }
  // Refused or not, the big ones had their tries meanwhile, and arrive when they may.
  rules.choose = () => "none";
  await world.clock.advance(300_000);
  expect([...(await there(world)).keys()]).toEqual(expect.arrayContaining(big));
});
