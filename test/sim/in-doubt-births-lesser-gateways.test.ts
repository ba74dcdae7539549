/**
 * Requests in doubt at gateways that lack features: a file or folder was created without an idempotency key or a journal,
 * and its answer is lost. What the first sending made is recognised by what it is; a foreign node is not taken for it.
 */
import { describe, expect, test } from "vitest";
import { FEATURE_NAMES, type Feature } from "../../src/contract/features.ts";
import type { HttpRequest } from "../../src/contract/http.ts";
import { HEARD_MS, savedAndRenamed } from "./support/lost-creation.ts";
import { ALL_ARRIVED_MS, begin, there } from "./support/one-world.ts";
import { bytesOf, sourceOf } from "./support/programs.ts";
import type { Weather } from "./support/transport.ts";

describe("a renamed file born without an answer, at a gateway without a journal", () => {
  test("somebody renames it, and it is removed here: the other name stays", async () => {
    const it = await begin(true, {}, { lacks: ["journal"] });
    const { clock } = it.world;
    await savedAndRenamed(it);
    await clock.advance(HEARD_MS);
    expect(await it.names()).toEqual(["a", "e"]);
    await it.unlink("a");
    await it.ends(["e"]);
  });
});

describe("a birth whose second sending is refused", () => {
  const NO_KEYS: readonly Feature[] = ["uploadKeys", "folderKeys", "changeKeys", "lastKey"];

  const WORLDS: readonly { what: string; lacks: readonly Feature[] }[] = [
    { what: "keys", lacks: NO_KEYS },
    { what: "keys and attributes", lacks: [...NO_KEYS, "attributes"] },
    { what: "keys and hashes", lacks: [...NO_KEYS, "hashes"] },
    { what: "keys of births", lacks: ["uploadKeys", "folderKeys"] },
    { what: "anything", lacks: FEATURE_NAMES },
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

  /** `b` is made, and nobody answers; lists show it later than the journal tells of it, or sooner. */
  async function unanswered(
    lacks: readonly Feature[],
    kind: Kind,
    fault: "lost-before" | "lost-after",
    journal = 5_000,
  ) {
    const it = await begin(true, {}, { lacks });
    await it.drain();
    it.world.setLag({ path: 3_000, journal, id: 0 });
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

  test.each(CASES)("without $what, a $kind refused for $refusal: renamed, it is shown once", async (the) => {
    for (const journal of [0, 5_000]) {
      const it = await unanswered(the.lacks, the.kind, "lost-after", journal);
      Object.assign(it.mount.weather, the.weather);
      await it.rename("b", "d");
      expect(await it.shown(15_000)).toEqual(["d"]);
      await it.clear();
      expect(await it.shown(60_000)).toEqual(["d"]);
      expect([...(await there(it.world)).keys()]).toEqual(["d"]);
    }
  });

  test.each(CASES)("without $what, a $kind refused for $refusal: removed, it stays so", async (the) => {
    const it = await unanswered(the.lacks, the.kind, "lost-after");
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
      const it = await unanswered(NO_KEYS, the.kind, "lost-after", 8_000);
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
    const it = await unanswered(NO_KEYS, "file", "lost-after");
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
    { what: "keys", lacks: NO_KEYS, label: "theirs" },
    { what: "keys", lacks: NO_KEYS, label: "b" },
    { what: "keys and hashes", lacks: [...NO_KEYS, "hashes"] as const, label: "theirs" },
    { what: "anything", lacks: FEATURE_NAMES, label: "theirs" },
  ];

  test.each(STRANGERS)("without $what: what somebody has saved there ($label) stays his", async ({ lacks, label }) => {
    const it = await unanswered(lacks, "file", "lost-before");
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

  const LACKS: readonly { what: string; lacks: readonly Feature[] }[] = [
    { what: "conditions", lacks: ["conditions"] },
    { what: "keys", lacks: ["uploadKeys", "folderKeys", "changeKeys", "lastKey"] },
  ];

  async function lost(lacks: readonly Feature[]) {
    const it = await begin(true, {}, { lacks });
    const making = it.once("lost-after", isMaking);
    await it.world.run(it.calls().mkdir("d"));
    await it.until(making.isSent);
    return it;
  }

  test.each(LACKS)("without $what: it can be listed while the gateway does not answer", async ({ lacks }) => {
    const it = await lost(lacks);
    await it.until(() => it.engine().status().dirty === 0);
    it.mount.weather.isOffline = true;
    await it.world.clock.advance(60_000);
    expect(await it.world.run(it.calls().list("d"))).toEqual([]);
    await it.save("d/a");
    expect(await it.world.run(it.calls().list("d"))).toEqual(["a"]);
    it.mount.weather.isOffline = false;
    await it.ends(["d", "d/a"]);
  });

  test.each(LACKS)("without $what: it shows what somebody has put into it by then", async ({ lacks }) => {
    const it = await lost(lacks);
    const { outside, workspace } = it.world;
    const [folder] = (await it.world.run(outside.listFolder(workspace.root))).items;
    await it.world.run(outside.createFolder(folder?.id ?? "", "theirs"));
    await it.ends(["d", "d/theirs"]);
  });
});

describe("the contents of a folder made here, while its birth is in doubt", () => {
  const isCreation = ({ method, path }: HttpRequest) => method === "POST" && path === "/v1/nodes";

  const isListOf = ({ query }: HttpRequest, folder: string | undefined) => query.parentId === folder;

  const isList = ({ query }: HttpRequest) => query.parentId !== undefined;

  /** The birth of `d` is carried out and not answered; nothing is listed but `other`. */
  async function unanswered(hasKeys: boolean, lacks: readonly Feature[]) {
    const it = await begin(hasKeys, {}, { lacks });
    const { outside, workspace } = it.world;
    await it.world.run(it.calls().mkdir("other"));
    await it.drain();
    const [other] = (await it.world.run(outside.listFolder(workspace.root))).items;
    let births = 0;
    it.rules.choose = (request) => {
      if (isCreation(request)) births += 1;
      if (isCreation(request) && births === 1) return "silent-after";
      return isList(request) && !isListOf(request, other?.id) ? "failed" : undefined;
    };
    await it.world.run(it.calls().mkdir("d"));
    await it.until(() => births === 1);
    const row = () => it.rows().node("d");
    /** Whether the mount shows a name in `other` already. */
    const isShown = (name: string) => it.rows().inode(name, it.rows().inode("other")?.id ?? 0) !== undefined;
    return { ...it, other: other?.id ?? "", births: () => births, row, isShown };
  }

  test("without a journal, answered late: it is known to be empty without a list", async () => {
    const it = await unanswered(true, ["journal"]);
    const { outside } = it.world;
    await it.world.run(outside.createFolder(it.other, "more"));
    await it.until(() => it.row()?.nodeId != null, ALL_ARRIVED_MS);
    expect(it.births()).toBe(2);
    await it.world.clock.advance(5_000);
    expect(await it.world.run(it.calls().list("d"))).toEqual([]);
    it.rules.choose = () => undefined;
    await it.world.run(outside.createFolder(it.row()?.nodeId ?? "", "e"));
    await it.ends(["d", "d/e", "other", "other/more"]);
  });

  test("recognised late by its place: what others put into it meanwhile is shown once it can be listed", async () => {
    const it = await unanswered(false, ["uploadKeys", "folderKeys", "lastKey"]);
    const { outside, workspace } = it.world;
    const made = (await it.world.run(outside.listFolder(workspace.root))).items.find(({ name }) => name === "d");
    await it.world.run(outside.createFolder(made?.id ?? "", "e"));
    await it.world.run(outside.createFolder(it.other, "more"));
    await it.until(() => it.isShown("more"));
    it.rules.choose = (request) => (isListOf(request, made?.id) ? "failed" : undefined);
    await it.until(() => it.row()?.nodeId != null, ALL_ARRIVED_MS);
    it.rules.choose = () => "failed";
    expect(await it.world.run(it.calls().list("d"))).toEqual([]);
    await it.world.clock.advance(5_000);
    expect(await it.world.run(it.calls().list("d"))).toEqual([]);
    it.rules.choose = () => undefined;
    await it.until(() => it.rows().relists() === 0, ALL_ARRIVED_MS);
    expect(await it.world.run(it.calls().list("d"))).toEqual(["e"]);
    await it.ends(["d", "d/e", "other", "other/more"]);
  });

  test("a list that is never answered does not keep the journal from being followed", async () => {
    const it = await unanswered(false, ["uploadKeys", "folderKeys", "lastKey"]);
    const { outside, workspace } = it.world;
    const more = (name: string) => it.world.run(outside.createFolder(it.other, name));
    await more("first");
    await it.until(() => it.isShown("first"));
    const made = (await it.world.run(outside.listFolder(workspace.root))).items.find(({ name }) => name === "d");
    it.rules.choose = (request) => (isListOf(request, made?.id) ? "silent-before" : undefined);
    await it.until(() => it.rows().relists() === 1, ALL_ARRIVED_MS);
    for (const name of ["second", "third"]) {
      await it.world.clock.advance(20_000);
      await more(name);
      await it.until(() => it.isShown(name));
    }
    expect(it.rows().relists()).toBe(1);
    it.rules.choose = () => undefined;
    await it.ends(["d", "other", "other/first", "other/second", "other/third"]);
  });
});
