/**
 * Requests in doubt at plain gateways: a change was not answered. It is recognised by its effect; what others did besides
 * stays theirs.
 */
import { describe, expect, test } from "vitest";
import { ALL_FEATURES } from "../../src/contract/features.ts";
import type { HttpRequest } from "../../src/contract/http.ts";
import { PLAIN, PLAINEST } from "../support/features.ts";
import { begin } from "./support/one-world.ts";
import { bytesOf } from "./support/programs.ts";

describe("somebody does the same change and more in one request", () => {
  const isPatch = ({ method }: HttpRequest) => method === "PATCH";

  const MODE = 0o700;

  /** A folder `d` with a file and a file `a`; the mount's change of the mode of `path` has not arrived. */
  async function unsent(path: "a" | "d") {
    const it = await begin({}, { features: PLAIN });
    const { outside } = it.world;
    await it.world.run(it.calls().mkdir("d"));
    for (const name of ["d/x", "a"]) await it.save(name);
    await it.drain();
    it.world.setLag({ path: 3_000, journal: 20_000, id: 0 });
    const node = (at: string) => it.world.run(outside.getNodeByPath(`/${at}`, { workspace: "workspace" }));
    const [changed, other] = [await node(path), await node(path === "a" ? "d" : "a")];
    const sent = it.once("lost-before", isPatch);
    await it.world.run(it.calls().chmod(path, MODE));
    await it.until(sent.isSent);
    return { ...it, outside, changed, other, node, stat: (at: string) => it.world.run(it.calls().stat(at)) };
  }

  test.each([
    ["a", "nothing", ["d", "d/x", "theirs"]],
    ["d", "nothing", ["a", "theirs", "theirs/x"]],
    ["a", "the other", ["a", "a/x", "theirs"]],
    ["d", "the other", ["d", "theirs", "theirs/x"]],
  ] as const)(
    "%s is moved besides, and %s takes its place: it stays where they have it",
    async (path, taker, names) => {
      const it = await unsent(path);
      await it.world.run(it.outside.patchNode(it.changed.id, { name: "theirs", attributes: { mode: MODE } }));
      if (taker === "the other") await it.world.run(it.outside.patchNode(it.other.id, { name: path }));
      await it.ends(names);
      expect((await it.node("theirs")).id).toBe(it.changed.id);
      expect((await it.stat("theirs")).mode & 0o777).toBe(MODE);
      if (taker === "the other") expect((await it.node(path)).id).toBe(it.other.id);
    },
  );

  test.each(["a", "d"] as const)("another attribute of %s is changed besides: it stays", async (path) => {
    const it = await unsent(path);
    await it.world.run(it.outside.patchNode(it.changed.id, { attributes: { mode: MODE, uid: 4711 } }));
    await it.ends(["a", "d", "d/x"]);
    expect((await it.node(path)).attributes).toMatchObject({ mode: MODE, uid: 4711 });
  });
});

describe("lists are late", () => {
  test.each([
    { made: "file", how: "lost" },
    { made: "folder", how: "lost" },
    { made: "file", how: "crash" },
  ])("a $made that late lists still show after its removal is not the one made anew ($how)", async ({ made, how }) => {
    const it = await begin({}, { features: PLAIN });
    const { mkdir, rmdir } = it.calls();
    const make = () => (made === "file" ? it.save("b", "the same") : it.world.run(mkdir("b")));
    await make();
    await it.drain();
    await it.world.clock.advance(20_000);
    it.world.setLag({ path: 10_000, journal: 0, id: 0 });
    await (made === "file" ? it.unlink("b") : it.world.run(rmdir("b")));
    await it.until(() => it.asked.some((line) => line.startsWith("DELETE")));
    const isCreation = ({ method, path }: HttpRequest) => method === "POST" && /^\/v1\/(files|nodes)/.test(path);
    if (how === "crash") it.mount.weather.latencyMs = 300;
    const birth = how === "lost" ? it.once("lost-before", isCreation) : undefined;
    await make();
    await it.until(birth?.isSent ?? (() => it.rows().openRequests().length > 0));
    if (how === "crash") await it.again("crash");
    await it.ends(["b"]);
  });

  test.each([0, 8 * 3_600_000])(
    "slept for %i ms, then another boot: what old lists show of something removed does not come back",
    async (slept) => {
      let boot = "before";
      const it = await begin(
        {},
        { features: PLAINEST, engine: (_, __, own) => ({ settings: { ...own.settings, boot } }) },
      );
      await it.save("b");
      await it.save("c");
      await it.drain();
      await it.world.clock.advance(400_000);
      expect(await it.names()).toEqual(["b", "c"]);
      it.mount.skewMs = slept;
      it.world.setLag({ path: 120_000, journal: 0, id: 0 });
      await it.unlink("b");
      await it.world.clock.advance(10_000);
      boot = "after";
      await it.again("remount");
      for (let shown = 0; shown < 10; shown += 1) {
        await it.world.clock.advance(3_000);
        expect(await it.names()).toEqual(["c"]);
      }
    },
  );
});

describe("content that arrived and was refused when it was sent again", () => {
  test.each([
    { tier: "full", features: ALL_FEATURES },
    { tier: "plain", features: PLAIN },
  ])(
    "$tier: bytes that arrived and were refused when they were sent again are clean, and newer ones are sent",
    async ({ features }) => {
      const it = await begin({}, { features });
      await it.drain();
      it.world.setLag({ path: 3_000, journal: 5_000, id: 0 });
      const birth = it.once("lost-after", ({ method, path }) => method === "POST" && path.startsWith("/v1/files"));
      await it.save("b", "first");
      await it.until(birth.isSent);
      it.mount.weather.withdrawn = "node.node.create";
      await it.world.clock.advance(20_000);
      it.mount.weather.withdrawn = undefined;
      await it.drain();
      const inode = () => it.rows().inode("b");
      const { outside, workspace } = it.world;
      const [node] = (await it.world.run(outside.listFolder(workspace.root))).items;
      expect(inode()).toMatchObject({ content: "clean", originNode: node?.id, originVersion: node?.head });
      await it.save("b", "second");
      await it.ends(["b"]);
      expect(await it.content("b")).toBe(bytesOf("second", 40).toString("latin1"));
      expect(it.asked.filter((line) => / 20[01]$/.test(line) && !line.startsWith("PATCH"))).toEqual([
        "POST /v1/files/b 201",
        "PUT /v1/nodes/ID/content 200",
      ]);
    },
  );
});
