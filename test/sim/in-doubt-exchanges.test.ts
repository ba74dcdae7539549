/**
 * Two names that take each other's place (renameat2 with RENAME_EXCHANGE, or renames through a third name): one request at
 * a gateway that has it, recognised by its key and by what both nodes were; elsewhere moves through a name nobody uses, as
 * rings of more names always are. Lost and late answers, and what others do meanwhile.
 */

import { describe, expect, test } from "vitest";
import { ALL_FEATURES, type Features } from "../../src/contract/features.ts";
import type { HttpRequest } from "../../src/contract/http.ts";
import { PLAIN } from "../support/features.ts";
import type { Sabotage } from "./support/mount.ts";
import { begin, there } from "./support/one-world.ts";
import type { Fault } from "./support/transport.ts";
import { differences, treeOf } from "./support/tree.ts";

const isExchange = ({ path }: HttpRequest) => path.endsWith("/exchange");

/** `a` and `b` are files, `d` and `e` folders with one file each; all agreed. */
async function settled(sabotage: Sabotage = {}, features: Features = ALL_FEATURES) {
  const it = await begin(sabotage, { features });
  const { world, asked } = it;
  await it.world.run(it.calls().mkdir("d"));
  await it.world.run(it.calls().mkdir("e"));
  for (const path of ["a", "b", "d/x", "e/y"]) await it.save(path);
  await it.drain();
  asked.length = 0;
  return {
    ...it,
    exchange: (from: string, to: string) => world.run(it.calls().exchange(from, to)),
    /** It has come to rest with these names, and what is in them is at the gateway too. */
    async ends(names: readonly string[]) {
      await it.ends(names);
      const here = await world.run(treeOf(it.calls(), { withContent: true }));
      expect(differences(here, await there(world), ["the mount", "the gateway"])).toEqual([]);
    },
    node: (path: string) => world.run(world.outside.getNodeByPath(`/${path}`, { workspace: "workspace" })),
    /** What was asked for to bring them to their places. Folders' times are sent beside. */
    moves: () => asked.filter((line) => line.includes("/exchange ")),
  };
}

const NAMES = ["a", "b", "d", "d/x", "e", "e/y"];

test.each([
  ["a", "b", ["a", "b", "d", "d/x", "e", "e/y"]],
  ["a", "d/x", NAMES],
  ["d", "e", ["a", "b", "d", "d/y", "e", "e/x"]],
  ["b", "d", ["a", "b", "b/x", "d", "e", "e/y"]],
  ["d/x", "e", ["a", "b", "d", "d/x", "d/x/y", "e"]],
] as const)("%s and %s are exchanged by one request, and keep their nodes", async (from, to, names) => {
  const it = await settled();
  const [one, other] = [await it.node(from), await it.node(to)];
  await it.exchange(from, to);
  await it.ends(names);
  expect(it.moves()).toEqual(["POST /v1/nodes/ID/exchange 200"]);
  expect([(await it.node(to)).id, (await it.node(from)).id]).toEqual([one.id, other.id]);
});

test("renamed through a third name, two folders are exchanged all the same", async () => {
  const it = await settled();
  await it.rename("d", "t");
  await it.rename("e", "d");
  await it.rename("t", "e");
  await it.ends(["a", "b", "d", "d/y", "e", "e/x"]);
  expect(it.moves()).toEqual(["POST /v1/nodes/ID/exchange 200"]);
});

test("at a plain gateway it goes through a name nobody uses", async () => {
  const it = await settled({}, PLAIN);
  await it.exchange("a", "b");
  await it.ends(NAMES);
  expect(it.moves()).toEqual([]);
  expect(await it.content("a")).toContain("b");
});

test("a gateway that does not know the request is asked for it once, and then for moves", async () => {
  const request = (one: HttpRequest) => (isExchange(one) ? { ...one, path: "/v1/unknown/exchange" } : one);
  const it = await settled({ request });
  await it.exchange("a", "b");
  await it.ends(NAMES);
  expect(it.moves()).toHaveLength(1);
  expect(await it.content("a")).toContain("b");
});

test("three in a ring go through a name nobody uses", async () => {
  const it = await settled();
  const seen: string[] = [];
  it.rules.choose = ({ body }) => {
    if (body?.kind === "json") seen.push(JSON.stringify(body.value));
    return undefined;
  };
  await it.world.run(it.calls().mkdir("f"));
  await it.drain();
  await it.rename("d", "t");
  await it.rename("e", "d");
  await it.rename("f", "e");
  await it.rename("t", "f");
  await it.ends(["a", "b", "d", "d/y", "e", "f", "f/x"]);
  expect([it.moves(), seen.filter((body) => body.includes(".wsfs-moving-")).length]).toEqual([[], 1]);
});

const FAULTS: readonly Fault[] = ["lost-before", "lost-after", "silent-after", "late", "throttled", "unavailable"];

test.each(FAULTS)("%s: the exchange is done once", async (fault) => {
  const it = await settled();
  const [one, other] = [await it.node("a"), await it.node("d/x")];
  const sent = it.once(fault, isExchange);
  await it.exchange("a", "d/x");
  await it.until(sent.isSent);
  await it.ends(NAMES);
  expect([(await it.node("d/x")).id, (await it.node("a")).id]).toEqual([one.id, other.id]);
  expect([(await it.node("d/x")).revision, (await it.node("a")).revision]).toEqual([2, 2]);
});

test.each(["lost-before", "lost-after", "late"] as const)(
  "%s, and the daemon dies, and the journal is late: the exchange is done once",
  async (fault) => {
    const it = await settled();
    const [one, other] = [await it.node("a"), await it.node("b")];
    it.world.setLag({ path: 3_000, journal: 20_000, id: 0 });
    const sent = it.once(fault, isExchange);
    await it.exchange("a", "b");
    await it.until(sent.isSent);
    await it.again("crash");
    await it.ends(NAMES);
    expect([(await it.node("b")).id, (await it.node("a")).id]).toEqual([one.id, other.id]);
    expect([(await it.node("b")).revision, (await it.node("a")).revision]).toEqual([2, 2]);
  },
);

test("exchanged back while the answer is on its way, they are exchanged once more", async () => {
  const it = await settled();
  const sent = it.once("silent-after", isExchange);
  await it.exchange("a", "b");
  await it.until(sent.isSent);
  await it.exchange("a", "b");
  await it.ends(NAMES);
  expect([(await it.node("a")).revision, (await it.node("b")).revision]).toEqual([3, 3]);
  expect(await it.content("a")).toContain("a");
});

test.each(["a", "b"])(
  "%s is changed elsewhere first: it is refused, and asked for anew with both changes",
  async (path) => {
    const it = await settled();
    it.world.setLag({ path: 3_000, journal: 20_000, id: 0 });
    const { id } = await it.node(path);
    await it.world.run(it.world.outside.patchNode(id, { attributes: { mode: 0o600 } }));
    await it.exchange("a", "b");
    await it.ends(NAMES);
    expect(it.moves()).toEqual(["POST /v1/nodes/ID/exchange 412", "POST /v1/nodes/ID/exchange 200"]);
    const now = path === "a" ? "b" : "a";
    expect([(await it.node(now)).id, (await it.world.run(it.calls().stat(now))).mode & 0o777]).toEqual([id, 0o600]);
  },
);

test.each(["a", "b"])("%s is moved elsewhere first: its place there is kept, the other one's here", async (path) => {
  const it = await settled();
  it.world.setLag({ path: 3_000, journal: 20_000, id: 0 });
  const [moved, other] = [await it.node(path), await it.node(path === "a" ? "b" : "a")];
  await it.world.run(it.world.outside.patchNode(moved.id, { name: "elsewhere" }));
  await it.exchange("a", "b");
  await it.ends([path, "d", "d/x", "e", "e/y", "elsewhere"]);
  expect([(await it.node("elsewhere")).id, (await it.node(path)).id]).toEqual([moved.id, other.id]);
});

test.each(["a", "b"])("%s is deleted elsewhere first: the other one gets its place", async (path) => {
  const it = await settled();
  it.world.setLag({ path: 3_000, journal: 20_000, id: 0 });
  const [gone, other] = [await it.node(path), await it.node(path === "a" ? "b" : "a")];
  await it.world.run(it.world.outside.deleteNode(gone.id));
  await it.exchange("a", "b");
  await it.ends([path, "d", "d/x", "e", "e/y"]);
  expect((await it.node(path)).id).toBe(other.id);
});

test("the other one is changed elsewhere after the exchange, before its answer: that is news, and only that", async () => {
  const it = await settled();
  const { id } = await it.node("b");
  const sent = it.once("silent-after", isExchange);
  await it.exchange("a", "b");
  await it.until(sent.isSent);
  await it.world.clock.advance(500);
  await it.world.run(it.world.outside.patchNode(id, { name: "later" }));
  await it.ends(["b", "d", "d/x", "e", "e/y", "later"]);
  expect((await it.node("later")).id).toBe(id);
});

test("what was written to one of them is sent to its node, after the exchange", async () => {
  const it = await settled();
  const before = await it.node("a");
  await it.save("a", "newer");
  await it.exchange("a", "b");
  await it.ends(NAMES);
  expect(it.moves()).toEqual(["POST /v1/nodes/ID/exchange 200"]);
  expect((await it.node("b")).id).toBe(before.id);
  expect(await it.content("b")).toContain("newer");
});

test("one that is being sent at that moment is exchanged when it has arrived", async () => {
  const it = await settled();
  const sent = it.once("silent-after", ({ method, path }) => method === "PUT" && path.endsWith("/content"));
  await it.save("a", "newer");
  await it.until(sent.isSent);
  await it.exchange("a", "b");
  await it.ends(NAMES);
  expect(it.moves()).toEqual(["POST /v1/nodes/ID/exchange 200"]);
  expect(await it.content("b")).toContain("newer");
});

test("one that the gateway does not have yet is born where it is by then", async () => {
  const it = await settled();
  it.mount.weather.isOffline = true;
  await it.save("new");
  await it.exchange("a", "new");
  it.mount.weather.isOffline = false;
  await it.ends([...NAMES, "new"]);
  expect(it.moves()).toEqual([]);
  expect(await it.content("a")).toContain("new");
});

test("what is done to the other one while the answer is on its way is asked for after it", async () => {
  const it = await settled();
  const sent = it.once("silent-after", isExchange);
  await it.exchange("a", "b");
  await it.until(sent.isSent);
  // Whichever of the two it is.
  for (const path of ["a", "b"]) await it.world.run(it.calls().chmod(path, 0o600));
  await it.ends(NAMES);
  expect(it.asked.filter((line) => !line.endsWith(" 200"))).toEqual([]);
});

test("one that is removed while the answer is on its way is removed", async () => {
  const it = await settled();
  const sent = it.once("silent-after", isExchange);
  await it.exchange("a", "b");
  await it.until(sent.isSent);
  await it.unlink("a");
  await it.ends(["b", "d", "d/x", "e", "e/y"]);
  expect(it.moves()).toHaveLength(2);
});

describe("in the queue", () => {
  test("while the exchange is not answered, both say so; retried by either name, it goes at once", {
    timeout: 120_000,
  }, async () => {
    for (const retried of ["/a", "/b"]) {
      const it = await begin();
      const { world, rules } = it;
      await it.save("a");
      await it.save("b");
      await it.drain();
      const queue = async () => (await it.queue()).sort((x, y) => (x.path < y.path ? -1 : 1));
      let isFailing = true;
      let asked = 0;
      rules.choose = ({ path }) => {
        if (!path.endsWith("/exchange")) return undefined;
        asked += 1;
        return isFailing ? "failed" : undefined;
      };
      await world.run(it.calls().exchange("a", "b"));
      await world.clock.advance(200_000);
      const failure = /tried \d+ times: exchangeNodes: 500 .* \(in \d+\.\d s\)$/;
      const [one, other] = (await queue()).sort((x, y) => x.why.length - y.why.length);
      expect([one?.what, other?.what, one?.state, other?.state]).toEqual(["move", "move", "retry", "retry"]);
      expect(one?.why).toMatch(failure);
      expect(other?.why).toBe(`exchanged with ${one?.path} by one request: ${one?.why}`);
      isFailing = false;
      const tries = asked;
      expect(await world.run(it.engine().retry([retried]))).toEqual({ retried: 1, unknown: [] });
      await world.clock.advance(500);
      expect(asked).toBe(tries + 1);
      await world.clock.advance(1_000);
      expect(await queue()).toEqual([]);
    }
  });
});
