/**
 * Requests in doubt: a deletion was sent, and its answer is lost, late or a refusal. What is made under the name since is
 * not taken along, what is gone stays gone, and the name gets to the gateway also where the deletion is refused for good.
 */
import { describe, expect, test } from "vitest";
import { ALL_FEATURES, type Features } from "../../src/contract/features.ts";
import type { HttpRequest } from "../../src/contract/http.ts";
import { PLAIN } from "../support/features.ts";
import { begin, there } from "./support/one-world.ts";
import { edit } from "./support/outside.ts";
import { bytesOf, runProgram } from "./support/programs.ts";
import type { Weather } from "./support/transport.ts";
import { hashOf } from "./support/tree.ts";

describe("arrives late, or its answer is lost", () => {
  const isDeletion = ({ method }: HttpRequest) => method === "DELETE";

  test.each(["crash", "remount"] as const)(
    "a deletion that arrives after a %s takes nothing made since",
    async (how) => {
      const it = await begin();
      await it.save("a", "the same");
      await it.drain();
      const deletion = it.once("late", isDeletion);
      await it.unlink("a");
      await it.until(deletion.isSent);
      await it.again(how);
      // The very same content: nothing tells it from what was deleted but that it was made again.
      await it.save("a", "the same");
      await it.ends(["a"]);
      expect(await it.content("a")).toBe(bytesOf("the same", 40).toString("latin1"));
    },
  );

  test("a deletion's answer was lost, and somebody restores the node: it is not deleted twice", async () => {
    const it = await begin();
    await it.save("a");
    await it.drain();
    const [node] = (await it.world.run(it.world.outside.listFolder(it.world.workspace.root))).items;
    const deletion = it.once("silent-after", isDeletion);
    await it.unlink("a");
    await it.until(deletion.isSent);
    await it.world.clock.advance(2_000);
    await it.world.run(it.world.outside.restoreNode(node?.id ?? ""));
    await it.ends(["a"]);
    expect(it.asked.filter((line) => line.startsWith("DELETE"))).toEqual([
      "DELETE /v1/nodes/ID 200",
      "DELETE /v1/nodes/ID 200",
    ]);
  });
});

describe("carried out without an answer, and refused when it is sent again", () => {
  const BYTES = "the same";

  /** These are saved with the same bytes, and `e` is removed: carried out, not answered, then refused. The journal is late. */
  async function removed(names: readonly string[], features: Features, refusal: Partial<Weather>) {
    const it = await begin({}, { features });
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
        await it.world.run(it.engine().retry());
      },
    };
  }

  const CASES = [
    { kind: "full", features: ALL_FEATURES, refusal: { withdrawn: "node.file.delete" } },
    { kind: "full", features: ALL_FEATURES, refusal: { refusal: 403 } },
    { kind: "plain", features: PLAIN, refusal: { withdrawn: "node.file.read" } },
    { kind: "plain", features: PLAIN, refusal: { refusal: 403 } },
  ] as const;

  test.each(CASES)(
    "$kind, $refusal: what is made in its place is a new node, no version of one that may be gone",
    async ({ features, refusal }) => {
      const it = await removed(["e"], features, refusal);
      const node = it.rows().dirtyNodes()[0]?.nodeId ?? "";
      await it.save("e", BYTES);
      expect(it.rows().nodeOfId(node)?.entry).toBeNull();
      await it.clear();
      await it.ends(["e"]);
      expect(await it.content("e")).toBe(bytesOf(BYTES, 40).toString("latin1"));
    },
  );

  test.each(CASES)(
    "$kind, $refusal: what is moved into its place, with the same bytes, stays there",
    async ({ features, refusal }) => {
      const it = await removed(["a", "e"], features, refusal);
      await it.rename("a", "e");
      await it.clear();
      await it.ends(["e"]);
      expect(await it.content("e")).toBe(bytesOf(BYTES, 40).toString("latin1"));
    },
  );

  test.each(["crash", "remount"] as const)("what is moved into its place after a %s stays there", async (how) => {
    const it = await removed(["a", "e"], ALL_FEATURES, { withdrawn: "node.file.delete" });
    await it.again(how);
    await it.rename("a", "e");
    await it.clear();
    await it.ends(["e"]);
    expect(await it.content("e")).toBe(bytesOf(BYTES, 40).toString("latin1"));
  });

  test("refused for a scope, then for another reason: it is sent again after a while, as it is without that", async () => {
    const it = await removed(["e"], ALL_FEATURES, { withdrawn: "node.file.delete" });
    const asked = () => it.asked.filter((line) => line.startsWith("DELETE")).length;
    const before = asked();
    await it.clear();
    await it.world.clock.advance(20_000);
    expect(asked() - before).toBeGreaterThan(1);
    expect(asked() - before).toBeLessThan(10);
    await it.ends([]);
  });
});

describe("refused for good, while its name was made again", () => {
  /** A request that was given up is remembered for so long; and until who waits looks again. */
  const FORGOTTEN_MS = 15 * 60_000;

  const WITHDRAWN: Partial<Weather> = { withdrawn: "node.file.delete" };

  /** `e` is removed, which does not arrive, and is refused when it is sent again. */
  async function refused(names: readonly string[], refusal: Partial<Weather>) {
    const it = await begin();
    for (const name of names) await it.save(name);
    await it.drain();
    const deletion = it.once("lost-before", ({ method }) => method === "DELETE");
    await it.unlink("e");
    await it.until(deletion.isSent);
    Object.assign(it.mount.weather, refusal);
    await it.until(() => it.world.lines.some((line) => line.includes("info: refused: ")));
    return it;
  }

  test.each([WITHDRAWN, { refusal: 403 } as const])(
    "%o: a name that is made again gets to the gateway",
    async (refusal) => {
      const it = await refused(["e"], refusal);
      await it.save("e", "after");
      // It was about the node: what is refused for that is not tried again by itself.
      it.mount.weather.refusal = undefined;
      await it.world.clock.advance(FORGOTTEN_MS);
      await it.ends(["e"]);
      expect(await it.content("e")).toBe(bytesOf("after", 40).toString("latin1"));
      expect(it.asked.filter((line) => line.startsWith("DELETE") && !line.endsWith(" 403"))).toEqual([]);
    },
  );

  test("a name that is made again gets to the gateway also after a crash", async () => {
    const it = await refused(["e"], WITHDRAWN);
    await it.save("e", "after");
    await it.again("crash");
    await it.world.clock.advance(FORGOTTEN_MS);
    await it.ends(["e"]);
    expect(await it.content("e")).toBe(bytesOf("after", 40).toString("latin1"));
  });

  test("a name that is made again before the refusal is here gets to the gateway", async () => {
    const it = await begin();
    await it.save("e");
    await it.drain();
    Object.assign(it.mount.weather, { ...WITHDRAWN, latencyMs: 5_000 });
    await it.unlink("e");
    await it.until(() => it.rows().openRequests().length > 0);
    await it.save("e", "after");
    it.mount.weather.latencyMs = 0;
    await it.world.clock.advance(60_000);
    await it.ends(["e"]);
    expect(await it.content("e")).toBe(bytesOf("after", 40).toString("latin1"));
  });

  test("what is moved to the name gets there, and its own node, which cannot go either, is what waits", async () => {
    const it = await refused(["a", "e"], WITHDRAWN);
    await it.rename("a", "e");
    await it.world.clock.advance(FORGOTTEN_MS);
    const waiting = it.rows().dirtyNodes();
    expect(waiting.map(({ entry, baseName }) => [entry, baseName])).toEqual([[null, "a"]]);
    it.mount.weather.withdrawn = undefined;
    await it.ends(["e"]);
    expect(await it.content("e")).toBe(bytesOf("a", 40).toString("latin1"));
  });

  test("a name that came back with somebody's change, and is saved as it is, has nothing to send", async () => {
    const it = await refused(["e"], WITHDRAWN);
    const { world } = it;
    await edit(world, { do: "outside", edit: "write", path: "e", to: "" }, "");
    await it.until(() => it.rows().inode("e") !== undefined);
    await world.run(runProgram(it.calls(), { do: "save", path: "e", size: 40 }, "outside"));
    await world.clock.advance(60_000);
    expect(it.rows().inode("e")?.content).toBe("clean");
  });
});

describe("at a plain gateway", () => {
  const isDeletion = ({ method }: HttpRequest) => method === "DELETE";

  /** `a` is removed, and nothing is done; from then on its id answers 404 for a while, as if another server were asked. */
  async function hiddenOnceDeleted() {
    let isHidden = false;
    const hide = (one: HttpRequest) =>
      isHidden && one.method === "GET" && /^\/v1\/nodes\/[^/]+$/.test(one.path)
        ? { ...one, path: "/v1/nodes/none" }
        : one;
    const it = await begin({ request: hide }, { features: PLAIN });
    await it.save("a", "old");
    await it.drain();
    const deletion = it.once("lost-before", isDeletion);
    await it.unlink("a");
    await it.until(deletion.isSent);
    isHidden = true;
    it.world.clock.setTimer(40_000, () => {
      isHidden = false;
    });
    return it;
  }

  test("a deletion that was not carried out is not taken for done while the id of its node is not found yet", async () => {
    const it = await hiddenOnceDeleted();
    await it.world.clock.advance(10_000);
    expect(it.world.lines.join("\n")).toMatch(/DELETE.*\n(.*\n)*.*GET \/v1\/nodes\/.*: 404/);
    await it.ends([]);
  });

  test.each(["lost", "crash"] as const)("a deletion (%s): what is saved in its place is sent at once", async (how) => {
    const it = await begin({}, { features: PLAIN });
    await it.save("a", "old");
    await it.drain();
    const nodes = async () => (await it.world.run(it.world.outside.listFolder(it.world.workspace.root))).items;
    const [old] = await nodes();
    it.world.setLag({ path: 0, journal: 60_000, id: 0 });
    const deletion = it.once("lost-after", ({ method }) => method === "DELETE");
    await it.unlink("a");
    await it.until(deletion.isSent);
    if (how === "crash") await it.again("crash");
    // Its id answers 404.
    await it.world.clock.advance(5_000);
    await it.save("a", "new");
    await it.world.clock.advance(5_000);
    const [made, ...others] = await nodes();
    expect(others).toEqual([]);
    expect(made?.id).not.toBe(old?.id);
    expect((await there(it.world)).get("a")?.content).toBe(hashOf(bytesOf("new", 40)));
    await it.ends(["a"]);
  });

  test("a deletion that never arrived, of a node whose id is not found yet: what is saved in its place waits for it", async () => {
    const it = await hiddenOnceDeleted();
    await it.world.clock.advance(5_000);
    await it.save("a", "new");
    await it.world.clock.advance(5_000);
    expect(it.asked.filter((line) => line.startsWith("POST"))).toEqual(["POST /v1/files/a 201"]);
    await it.ends(["a"]);
    expect((await there(it.world)).get("a")?.content).toBe(hashOf(bytesOf("new", 40)));
  });

  /** A request that was given up is remembered for so long; and until who waits looks again. */
  const FORGOTTEN_MS = 15 * 60_000;

  const WITHDRAWN: Partial<Weather> = { withdrawn: "node.file.delete" };

  test("a node that is gone without anybody telling is not what the name has", async () => {
    const it = await begin({}, { features: PLAIN });
    for (const name of ["a", "e"]) await it.save(name, "the same");
    await it.drain();
    const deletion = it.once("late", ({ method }) => method === "DELETE");
    await it.unlink("e");
    await it.until(deletion.isSent);
    Object.assign(it.mount.weather, WITHDRAWN);
    await it.world.clock.advance(20_000);
    await it.rename("a", "e");
    await it.world.clock.advance(FORGOTTEN_MS);
    it.mount.weather.withdrawn = undefined;
    await it.ends(["e"]);
    expect(await it.content("e")).toBe(bytesOf("the same", 40).toString("latin1"));
  });
});
