/**
 * Requests in doubt at gateways that lack features: a change without an idempotency key was not answered. It is recognised
 * by its effect; what others did besides stays theirs, and a drain waits until lists and journal show the change.
 */
import { describe, expect, test } from "vitest";
import { FEATURE_NAMES, type Feature } from "../../src/contract/features.ts";
import type { HttpRequest } from "../../src/contract/http.ts";
import { isMove } from "./support/late-move.ts";
import { begin } from "./support/one-world.ts";
import { bytesOf } from "./support/programs.ts";
import { hashOf } from "./support/tree.ts";

describe("somebody does the same change and more in one request", () => {
  const isPatch = ({ method }: HttpRequest) => method === "PATCH";

  const MODE = 0o700;

  /** A folder `d` with a file and a file `a`; the mount's change of the mode of `path` has not arrived. */
  async function unsent(path: "a" | "d") {
    const it = await begin(false);
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

describe("arrived between the reading of the node and the repetition", () => {
  test("without keys: what arrives between the reading and the repetition is ours all the same", async () => {
    const it = await begin(false);
    await it.save("a");
    await it.drain();
    const { outside, workspace } = it.world;
    const [node] = (await it.world.run(outside.listFolder(workspace.root))).items;
    it.mount.weather.latencyMs = 50;
    const late = () => outside.patchNode(node?.id ?? "", { name: "b" }, { ifRevision: node?.revision ?? 0 });
    const arrivals: Promise<unknown>[] = [];
    let moves = 0;
    it.rules.choose = (request) => {
      if (!isMove(request)) return undefined;
      moves += 1;
      if (moves === 2) arrivals.push(late());
      return moves === 1 ? "silent-before" : undefined;
    };
    await it.rename("a", "b");
    await it.until(() => moves === 1);
    await it.rename("b", "c");
    await it.ends(["c"]);
    await it.world.run(Promise.all(arrivals));
    expect(it.asked.filter((line) => line.endsWith("412"))).toEqual(["PATCH /v1/nodes/ID 412"]);
  });
});

describe("lists or the journal are late", () => {
  const NO_KEYS = ["uploadKeys", "folderKeys", "changeKeys", "lastKey"] as const;

  const LATE_LISTS: readonly {
    lacks: readonly Feature[];
    kind: string;
    made: "file" | "folder";
    how: "lost" | "crash";
  }[] = [
    { lacks: NO_KEYS, kind: "keys", made: "file", how: "lost" },
    { lacks: NO_KEYS, kind: "keys", made: "folder", how: "lost" },
    { lacks: [...NO_KEYS, "conditions"], kind: "keys and conditions", made: "file", how: "crash" },
  ];

  test.each(LATE_LISTS)(
    "without $kind: a $made that late lists still show after its removal is not the one made anew ($how)",
    async ({ lacks, made, how }) => {
      const it = await begin(true, {}, { lacks });
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
    },
  );

  test.each([0, 8 * 3_600_000])(
    "slept for %i ms, then another boot: what old lists show of something removed does not come back",
    async (slept) => {
      let boot = "before";
      const it = await begin(
        true,
        {},
        { lacks: FEATURE_NAMES, engine: (_, __, own) => ({ settings: { ...own.settings, boot } }) },
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

  const CHANGES = ["mkdir", "save", "rename", "write", "rename of a folder", "unlink", "rmdir"] as const;

  /** Lists or the journal may be the later ones; the journal may have told of it before the request is refused, or not. */
  const LATE = [
    { path: 8_000, journal: 0, id: 0 },
    { path: 3_000, journal: 5_000, id: 0 },
    { path: 8_000, journal: 5_000, id: 0 },
  ];

  const DRAINS = CHANGES.flatMap((what) =>
    LATE.map((lag) => ({ what, lag, late: `${lag.path} and ${lag.journal} ms` })),
  );

  test.each(DRAINS)(
    "without keys, $what: a drain waits until lists and journal show it ($late late)",
    async (drained) => {
      const { what, lag } = drained;
      const it = await begin(true, {}, { lacks: NO_KEYS });
      const { outside, workspace, clock } = it.world;
      await it.save("b", "old");
      await it.world.run(it.calls().mkdir("e"));
      await it.drain();
      it.world.setLag(lag);
      const isChange = ({ method }: HttpRequest) => method !== "GET";
      const change = it.once("lost-after", isChange);
      if (what === "mkdir") await it.world.run(it.calls().mkdir("d"));
      else if (what === "save") await it.save("d");
      else if (what === "write") await it.save("b", "new");
      else if (what === "unlink") await it.unlink("b");
      else if (what === "rmdir") await it.world.run(it.calls().rmdir("e"));
      else await it.rename(what === "rename" ? "b" : "e", "d");
      await it.until(change.isSent);
      const begun = clock.elapsed();
      await it.drain();
      expect(clock.elapsed() - begun).toBeLessThan(25_000);
      const { items, asOf } = await it.world.run(outside.listFolder(workspace.root));
      if (what === "write") expect(items[0]?.contentHash).toBe(hashOf(bytesOf("new", 40)));
      else if (what === "unlink" || what === "rmdir") expect(items.length).toBe(1);
      else expect(items.map(({ name }) => name)).toContain("d");
      expect([asOf, it.rows().cursor()]).toEqual([it.world.position(), it.world.position()]);
      expect(it.engine().status().settled).toBe(true);
    },
  );
});

describe("content that arrived and was refused when it was sent again", () => {
  const LACKS: readonly { what: string; lacks: readonly Feature[] }[] = [
    { what: "conditions", lacks: ["conditions"] },
    { what: "keys", lacks: ["uploadKeys", "folderKeys", "changeKeys", "lastKey"] },
  ];

  test.each([{ what: "nothing", lacks: [] }, ...LACKS])(
    "without $what: bytes that arrived and were refused when they were sent again are clean, and newer ones are sent",
    async ({ lacks }) => {
      const it = await begin(true, {}, { lacks });
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
