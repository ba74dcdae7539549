/**
 * Requests in doubt at plain gateways: a file or folder was created, and its answer is lost. What the first sending made is recognised by what it is; a foreign node is not taken for it.
 */
import { describe, expect, test } from "vitest";
import type { Features } from "../../src/contract/features.ts";
import type { HttpRequest } from "../../src/contract/http.ts";
import { PLAIN, PLAINEST, without } from "../support/features.ts";
import { HEARD_MS, isCreation, savedAndRenamed } from "./support/lost-creation.ts";
import { begin, there } from "./support/one-world.ts";
import { bytesOf, sourceOf } from "./support/programs.ts";
import type { Weather } from "./support/transport.ts";

describe("a renamed file born without an answer, at a plain gateway", () => {
  test("somebody renames it, and it is removed here: the other name stays", async () => {
    const it = await begin({}, { features: PLAIN });
    const { clock } = it.world;
    await savedAndRenamed(it);
    await clock.advance(HEARD_MS);
    expect(await it.names()).toEqual(["a", "e"]);
    await it.unlink("a");
    await it.ends(["e"]);
  });
});

describe("a file whose creation was not answered, at a gateway that counts changes and tells no hashes", () => {
  test.each([40, 70])(
    "removed here before it is heard of, and %i bytes of another written to it: they stay",
    async (size) => {
      const it = await begin({}, { features: without("hashes") });
      const { outside, workspace } = it.world;
      await it.drain();
      it.world.setLag({ path: 0, journal: 3_000, id: 0 });
      const birth = it.once("silent-after", isCreation);
      await it.save("b");
      await it.until(birth.isSent);
      await it.unlink("b");
      const [node] = (await it.world.run(outside.listFolder(workspace.root))).items;
      if (node?.head == null) throw new Error("nothing was created");
      const theirs = bytesOf("theirs", size);
      await it.world.run(outside.writeContent(node.id, sourceOf(theirs), { ifHead: node.head }));
      await it.ends(["b"]);
      expect(await it.content("b")).toBe(theirs.toString("latin1"));
    },
  );
});

describe("a birth whose second sending is refused", () => {
  const WORLDS = [
    { what: "plain", features: PLAIN },
    { what: "plain without hashes", features: { ...PLAIN, hashes: false } },
    { what: "the plainest", features: PLAINEST },
  ];

  const REFUSALS: readonly { refusal: string; weather: Partial<Weather> }[] = [
    { refusal: "a scope", weather: { withdrawn: "node.node.create" } },
    { refusal: "a scope of moves too", weather: { withdrawn: "node.node.update" } },
    { refusal: "403", weather: { refusal: 403 } },
    { refusal: "a name that is taken", weather: {} },
  ];

  const KINDS = ["file", "folder"] as const;

  const CASES = WORLDS.flatMap((world) =>
    REFUSALS.flatMap((refusal) => KINDS.map((kind) => ({ ...world, ...refusal, kind }))),
  );

  type Kind = (typeof KINDS)[number];

  /** `b` is made, and nobody answers; lists show it some milliseconds later (`path`). */
  async function unanswered(features: Features, kind: Kind, fault: "lost-before" | "lost-after", path = 3_000) {
    const it = await begin({}, { features });
    await it.drain();
    it.world.setLag({ path, journal: 0, id: 0 });
    const birth = it.once(fault, ({ method, path }) => method === "POST" && /files\/b|nodes/.test(path));
    if (kind === "file") await it.save("b");
    else await it.world.run(it.calls().mkdir("b"));
    await it.until(birth.isSent);
    const names = new Set<string>();
    return {
      ...it,
      /** All names that are shown meanwhile. */
      async shown(ms: number) {
        for (let passed = 0; passed < ms; passed += 100) {
          await it.world.clock.advance(100);
          for (const name of await it.names()) names.add(name);
        }
        return [...names].sort();
      },
      async clear() {
        Object.assign(it.mount.weather, { withdrawn: undefined, refusal: undefined });
        await it.world.run(it.engine().retry());
      },
      remove: () => (kind === "file" ? it.unlink("b") : it.world.run(it.calls().rmdir("b"))),
    };
  }

  test.each(CASES)("$what, a $kind refused for $refusal: renamed, it is shown once", async (the) => {
    for (const path of [0, 3_000]) {
      const it = await unanswered(the.features, the.kind, "lost-after", path);
      Object.assign(it.mount.weather, the.weather);
      await it.rename("b", "d");
      expect(await it.shown(15_000)).toEqual(["d"]);
      await it.clear();
      expect(await it.shown(60_000)).toEqual(["d"]);
      expect([...(await there(it.world)).keys()]).toEqual(["d"]);
    }
  });

  test.each(CASES)("$what, a $kind refused for $refusal: removed, it stays so", async (the) => {
    const it = await unanswered(the.features, the.kind, "lost-after");
    Object.assign(it.mount.weather, the.weather);
    await it.remove();
    expect(await it.shown(15_000)).toEqual([]);
    await it.clear();
    expect(await it.shown(60_000)).toEqual([]);
    await it.world.clock.advance(400_000);
    expect([...(await there(it.world)).keys()]).toEqual([]);
  });

  const TWICE = KINDS.flatMap((kind) => [false, true].map((isCrash) => ({ kind, isCrash })));

  test.each(TWICE)(
    "a $kind made anew by its new name before it is heard of (a crash: $isCrash): one is left",
    async (the) => {
      const it = await unanswered(PLAIN, the.kind, "lost-after", 8_000);
      it.mount.weather.withdrawn = "node.node.create";
      await it.rename("b", "d");
      await it.until(() => it.world.lines.some((line) => /refused: .*(upload|createNode)/.test(line)));
      await it.clear();
      const made = () => it.asked.filter((line) => /^POST .* 201$/.test(line)).length;
      await it.until(() => made() === 2, 2_000);
      if (the.isCrash) await it.again("crash");
      expect(await it.shown(15_000)).toEqual(["d"]);
      await it.ends(["d"]);
    },
  );

  test("what was saved under the name since is not in conflict with what it was", async () => {
    const it = await unanswered(PLAIN, "file", "lost-after");
    it.mount.weather.withdrawn = "node.node.update";
    await it.rename("b", "d");
    await it.save("b", "another");
    await it.world.clock.advance(1_000);
    await it.clear();
    await it.ends(["b", "d"]);
    expect(await it.content("d")).toBe(bytesOf("b", 40).toString("latin1"));
    expect(await it.content("b")).toBe(bytesOf("another", 40).toString("latin1"));
  });

  /** Of the same size; at a gateway that keeps attributes even the same bytes are not the same file. */
  const STRANGERS = [
    { what: "plain", features: PLAIN, label: "theirs" },
    { what: "plain", features: PLAIN, label: "b" },
    { what: "plain without hashes", features: { ...PLAIN, hashes: false }, label: "theirs" },
    { what: "the plainest", features: PLAINEST, label: "theirs" },
  ];

  test.each(STRANGERS)("$what: what somebody has saved there ($label) stays his", async ({ features, label }) => {
    const it = await unanswered(features, "file", "lost-before");
    it.mount.weather.withdrawn = "node.node.update";
    await it.rename("b", "d");
    await it.world.clock.advance(1_500);
    const { outside, workspace } = it.world;
    const theirs = await it.world.run(outside.upload(workspace.root, "b", sourceOf(bytesOf(label, 40))));
    await it.shown(60_000);
    await it.clear();
    await it.shown(60_000);
    expect((await it.world.run(outside.getNode(theirs.id))).name).toBe("b");
    expect([await it.names(), [...(await there(it.world)).keys()]]).toEqual([
      ["b", "d"],
      ["b", "d"],
    ]);
    expect(await it.content("b")).toBe(bytesOf(label, 40).toString("latin1"));
  });
});

describe("a folder whose creation was not answered", () => {
  const isMaking = ({ method, path }: HttpRequest) => method === "POST" && path === "/v1/nodes";

  async function lost() {
    const it = await begin({}, { features: PLAIN });
    const making = it.once("lost-after", isMaking);
    await it.world.run(it.calls().mkdir("d"));
    await it.until(making.isSent);
    return it;
  }

  test("it can be listed while the gateway does not answer", async () => {
    const it = await lost();
    await it.until(() => it.engine().status().dirty === 0);
    it.mount.weather.isOffline = true;
    await it.world.clock.advance(60_000);
    expect(await it.world.run(it.calls().list("d"))).toEqual([]);
    await it.save("d/a");
    expect(await it.world.run(it.calls().list("d"))).toEqual(["a"]);
    it.mount.weather.isOffline = false;
    await it.ends(["d", "d/a"]);
  });

  test("it shows what somebody has put into it by then", async () => {
    const it = await lost();
    const { outside, workspace } = it.world;
    const [folder] = (await it.world.run(outside.listFolder(workspace.root))).items;
    await it.world.run(outside.createFolder(folder?.id ?? "", "theirs"));
    await it.ends(["d", "d/theirs"]);
  });
});
