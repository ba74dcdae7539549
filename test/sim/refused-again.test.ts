/**
 * A deletion was carried out and nobody said so, and when it is sent again, or the gateway is read to see whether it was,
 * that is refused: this says nothing of the first sending. Until the journal tells of it the node may be gone.
 */
import { expect, test } from "vitest";
import { begin } from "./support/one-world.ts";
import { bytesOf } from "./support/programs.ts";
import type { Weather } from "./support/transport.ts";

const BYTES = "the same";

/** These are saved with the same bytes, and `e` is removed: carried out, not answered, then refused. The journal is late. */
async function removed(names: readonly string[], hasKeys: boolean, refusal: Partial<Weather>) {
  const it = await begin(hasKeys);
  for (const name of names) await it.save(name, BYTES);
  await it.drain();
  it.world.setLag({ path: 0, journal: 30_000, id: 0 });
  const deletion = it.once("lost-after", ({ method }) => method === "DELETE");
  await it.unlink("e");
  await it.until(deletion.isSent);
  Object.assign(it.mount.weather, refusal);
  await it.until(() => it.world.lines.some((line) => line.includes("info: refused: ")));
  return {
    ...it,
    /** Nothing is refused any more. */
    async clear() {
      Object.assign(it.mount.weather, { refusal: undefined, withdrawn: undefined });
      await it.world.run(it.mount.process?.engine.retry() ?? Promise.reject());
    },
  };
}

const CASES = [
  { hasKeys: true, refusal: { withdrawn: "node.file.delete" } },
  { hasKeys: true, refusal: { refusal: 403 } },
  { hasKeys: false, refusal: { withdrawn: "node.file.read" } },
  { hasKeys: false, refusal: { refusal: 403 } },
] as const;

test.each(CASES)(
  "keys: $hasKeys, $refusal: what is made in its place is no version of what may be gone",
  async ({ hasKeys, refusal }) => {
    const it = await removed(["e"], hasKeys, refusal);
    const node = it.metadata().nodes.dirty(1)[0]?.nodeId ?? "";
    await it.save("e", BYTES);
    expect(it.metadata().nodes.ofNodeId(node)?.entry).toBeNull();
    await it.clear();
    await it.ends(["e"]);
    expect(await it.content("e")).toBe(bytesOf(BYTES, 40).toString("latin1"));
  },
);

test.each(CASES)(
  "keys: $hasKeys, $refusal: what is moved into its place, with the same bytes, stays there",
  async ({ hasKeys, refusal }) => {
    const it = await removed(["a", "e"], hasKeys, refusal);
    await it.rename("a", "e");
    await it.clear();
    await it.ends(["e"]);
    expect(await it.content("e")).toBe(bytesOf(BYTES, 40).toString("latin1"));
  },
);

test.each(["crash", "remount"] as const)("it is remembered by who comes after a %s", async (how) => {
  const it = await removed(["a", "e"], true, { withdrawn: "node.file.delete" });
  await it.again(how);
  await it.rename("a", "e");
  await it.clear();
  await it.ends(["e"]);
  expect(await it.content("e")).toBe(bytesOf(BYTES, 40).toString("latin1"));
});

test("refused for a scope, then for another reason: it is sent again after a while, as it is without that", async () => {
  const it = await removed(["e"], true, { withdrawn: "node.file.delete" });
  const asked = () => it.asked.filter((line) => line.startsWith("DELETE")).length;
  const before = asked();
  await it.clear();
  await it.world.clock.advance(20_000);
  expect(asked() - before).toBeGreaterThan(1);
  expect(asked() - before).toBeLessThan(10);
  await it.ends([]);
});
