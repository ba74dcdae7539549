/**
 * In-doubt requests: a creation, a change, a deletion or an exchange of two names was sent, and its answer is lost,
 * late or a refusal, or the daemon dies before it. It takes effect once, is recognised as this mount's own by its key
 * or, at plain gateways, by its effect, and is distinguished from what other clients do to the same node.
 */
import { describe, expect, test } from "vitest";
import { ALL_FEATURES, type Features, SETTLE_MS } from "../../src/contract/features.ts";
import type { HttpRequest } from "../../src/contract/http.ts";
import { PLAIN, PLAINEST, without } from "../support/features.ts";
import type { Sabotage } from "./support/mount.ts";
import { ALL_ARRIVED_MS, begin, type OneWorld, there } from "./support/one-world.ts";
import { edit } from "./support/outside.ts";
import { bytesOf, runProgram, sourceOf, textOf } from "./support/programs.ts";
import {
  isCreation,
  isDeletion,
  isExchange,
  isFileCreation,
  isFolderCreation,
  isMove,
  isNewVersion,
  isPatch,
} from "./support/requests.ts";
import type { Fault, Weather } from "./support/transport.ts";
import { differences, hashOf, TAG, treeOf } from "./support/tree.ts";

const TIMEOUT = { timeout: 120_000 };

/** A request without an answer is repeated after ten seconds; the journal shows its effect sooner. */
const HEARD_MS = 3_000;

/** An abandoned request is remembered for so long; then rows that wait for it are looked at again. */
const FORGOTTEN_MS = 15 * 60_000;

const WITHDRAWN: Partial<Weather> = { withdrawn: "node.file.delete" };

/** Saves `a`, whose creation is not answered; another client renames it to `e`. Returns the id of its node. */
async function savedAndRenamed(it: OneWorld): Promise<string> {
  await it.drain();
  const creation = it.once("silent-after", isCreation);
  await it.save("a");
  await it.until(creation.isSent);
  const [node] = await it.nodes();
  if (node === undefined) throw new Error("nothing was created");
  await it.world.run(it.world.outside.patchNode(node.id, { name: "e" }));
  return node.id;
}

/**
 * A file is moved from `a` to `b`: refused, for the name is taken, and carried out late when it is free again. Meanwhile a
 * program moved it on to `c`, of which nothing gets through until the rules change.
 */
async function movedLate() {
  const it = await begin();
  await it.save("a");
  await it.drain();
  const { outside, workspace } = it.world;
  const [node] = await it.nodes();
  const move = it.once("late", isMove);
  await it.rename("a", "b");
  await it.until(move.isSent);
  const taken = await it.world.run(outside.createFolder(workspace.root, "b"));
  await it.until(() => it.asked.includes("PATCH /v1/nodes/ID 409"));
  it.rules.choose = (request) => (isMove(request) ? "silent-before" : undefined);
  // Set aside for the folder.
  const [name = ""] = (await it.names()).filter((one) => one !== "b");
  await it.rename(name, "c");
  await it.world.run(outside.deleteNode(taken.id));
  await it.until(() => it.world.lines.some((line) => line.includes("late: PATCH")), ALL_ARRIVED_MS);
  if (it.asked.at(-1) !== "PATCH /v1/nodes/ID 200") throw new Error(`not carried out: ${it.asked.at(-1)}`);
  return { it, node };
}

describe("a creation: another client changes the new node before this mount hears of it", () => {
  test("a new file that another client moves and writes is shown once", async () => {
    const it = await begin();
    const { outside, clock } = it.world;
    const node = await savedAndRenamed(it);
    await it.world.run(outside.writeContent(node, sourceOf("theirs")));
    for (let waited = 0; waited < 30_000; waited += HEARD_MS) {
      await clock.advance(HEARD_MS);
      expect(["a", "e"]).toEqual(expect.arrayContaining(await it.names()));
      expect((await it.names()).length).toBe(1);
    }
    await it.ends(["e"]);
    expect(await it.content("e")).toBe("theirs");
  });

  test("a new folder that another client moves and fills is shown once", async () => {
    const it = await begin();
    const { outside, clock } = it.world;
    await it.drain();
    const creation = it.once("silent-after", isCreation);
    await it.world.run(it.calls().mkdir("d"));
    await it.save("d/own");
    await it.until(creation.isSent);
    const [node] = await it.nodes();
    await it.world.run(outside.patchNode(node?.id ?? "", { name: "e" }));
    await it.world.run(outside.upload(node?.id ?? "", "x", sourceOf("theirs")));
    for (let waited = 0; waited < 30_000; waited += HEARD_MS) {
      await clock.advance(HEARD_MS);
      expect((await it.names()).length).toBe(1);
    }
    await it.ends(["e", "e/own", "e/x"]);
    expect(await it.content("e/own")).toBe(textOf("d/own"));
  });
});

describe("a creation: sent again after a lost answer, and refused", () => {
  /** The second request is refused before the gateway looks whether it has carried it out already. */
  function refuseAfterCreation(it: OneWorld): void {
    const creation = it.once("lost-after", isCreation);
    const { choose } = it.rules;
    it.rules.choose = (request) => {
      if (creation.isSent()) it.mount.weather.refusal = 403;
      return choose(request);
    };
  }

  async function isRefused(it: OneWorld): Promise<void> {
    await it.until(() => it.world.lines.some((line) => /POST .* 403$/.test(line)));
    Object.assign(it.rules, { choose: () => undefined });
    it.mount.weather.refusal = undefined;
  }

  test("a new file that is then removed here goes, and stays away", async () => {
    const it = await begin();
    await it.drain();
    refuseAfterCreation(it);
    await it.save("a");
    await isRefused(it);
    await it.unlink("a");
    await it.ends([]);
  });

  test("a new file that is then written again is one file, without a conflict", async () => {
    const it = await begin();
    await it.drain();
    refuseAfterCreation(it);
    await it.save("a");
    await isRefused(it);
    await it.save("a", "second");
    await it.ends(["a"]);
    expect(await it.content("a")).toBe(textOf("second"));
  });

  test("a new folder shows what others have put into it since", async () => {
    const it = await begin();
    const { outside } = it.world;
    it.world.setLag({ path: 0, journal: 0, id: 9_000 });
    let creations = 0;
    it.rules.choose = (request) => {
      if (!isCreation(request)) return undefined;
      creations += 1;
      return "lost-after";
    };
    await it.world.run(it.calls().mkdir("d"));
    await it.until(() => creations > 0);
    it.rules.choose = () => undefined;
    it.mount.weather.refusal = 403;
    const [made] = await it.nodes();
    await it.world.run(outside.createFolder(made?.id ?? "", "others"));
    await it.world.clock.advance(12_000);
    it.mount.weather.refusal = undefined;
    await it.world.run(it.engine().retry());
    await it.ends(["d", "d/others"]);
  });
});

describe("a creation: abandoned before its answer, and shown by a late journal: a drain waits for what follows from it", () => {
  /** `a` is at the gateway, and neither journal nor list has shown it yet. */
  async function savedInDoubt() {
    const it = await begin();
    await it.drain();
    it.world.setLag({ path: 0, journal: 3_000, id: 0 });
    const creation = it.once("silent-after", isCreation);
    await it.save("a");
    await it.until(creation.isSent);
    await it.world.clock.advance(100);
    // Index and journal show everything before the deletion is sent again.
    it.once("lost-before", isDeletion);
    return it;
  }

  /** The drain has ended: the gateway has these names and no others, and nothing waits. */
  async function has(it: OneWorld, names: readonly string[]): Promise<void> {
    expect([(await it.nodes()).map(({ name }) => name), it.engine().status().dirty]).toEqual([names, 0]);
    await it.ends(names);
  }

  test("the file was removed here: its node is deleted", async () => {
    const it = await savedInDoubt();
    await it.unlink("a");
    await it.save("b");
    await it.drain();
    await has(it, ["b"]);
  });

  test("the file was saved anew and renamed here: the node of the old name is deleted", async () => {
    const it = await savedInDoubt();
    await it.save("a", "second");
    await it.rename("a", "b");
    await it.save("c");
    await it.drain();
    await has(it, ["b", "c"]);
  });
});

describe("a creation: answered after other clients have changed the node", () => {
  /** An id that has answered 404 for so long is gone. */
  const SETTLED_MS = 5 * 60_000 + 10_000;

  test("a folder whose creation is answered late shows what others put into it meanwhile", async () => {
    const it = await begin();
    const { outside } = it.world;
    await it.drain();
    const creation = it.once("silent-after", isFolderCreation);
    await it.world.run(it.calls().mkdir("d"));
    await it.until(creation.isSent);
    await it.world.clock.advance(1_000);
    const [folder] = await it.nodes();
    await it.world.run(outside.createFolder(folder?.id ?? "", "e"));
    await it.world.clock.advance(5_000);
    await it.ends(["d", "d/e"]);
  });

  test.each([false, true])(
    "the daemon dies between the answer and the read that follows from it: a node deleted meanwhile goes (row of that read lost: %s)",
    async (isBroken) => {
      const it = await begin();
      const { outside, workspace } = it.world;
      await it.drain();
      const upload = it.once("silent-after", isFileCreation);
      await it.save("a");
      await it.until(upload.isSent);
      const [node] = await it.nodes();
      await it.world.run(outside.deleteNode(node?.id ?? ""));
      // The journal is past the deletion, and listings too, before the upload is answered.
      await it.until(() => it.rows().cursor() >= it.world.position(), 5_000);
      const other = await it.world.run(outside.createFolder(workspace.root, "other"));
      await it.until(() => it.rows().cursor() >= other.position, 5_000);
      // Once lists and journal are past it, the deletion is remembered no more.
      it.mount.process?.database.exec("DELETE FROM tombstone");
      it.rules.choose = ({ method, path }) =>
        method === "GET" && path.startsWith("/v1/nodes/") ? "silent-before" : undefined;
      await it.until(() => it.rows().nodeOfId(node?.id ?? "") !== undefined);
      it.mount.crash((rows) => void (isBroken && rows.exec("DELETE FROM reread")));
      it.rules.choose = () => undefined;
      await it.world.run(it.mount.start());
      await it.world.clock.advance(SETTLED_MS);
      expect(await it.names()).toEqual(isBroken ? ["a", "other"] : ["other"]);
    },
  );

  test("a file whose deletion the journal shows before its creation is answered is gone at once", async () => {
    const it = await begin();
    const { outside } = it.world;
    await it.drain();
    const upload = it.once("silent-after", isFileCreation);
    await it.save("a");
    await it.until(upload.isSent);
    const [node] = await it.nodes();
    await it.world.run(outside.deleteNode(node?.id ?? ""));
    await it.until(() => it.asked.filter((line) => line === "POST /v1/files/a 201").length === 2);
    await it.world.clock.advance(1_000);
    expect(await it.names()).toEqual([]);
  });

  test("a new file is not taken for deleted while its id answers 404, though the journal has shown it", async () => {
    const it = await begin();
    await it.drain();
    it.world.setLag({ path: 0, journal: 0, id: 20_000 });
    const upload = it.once("silent-after", isFileCreation);
    await it.save("a");
    await it.until(upload.isSent);
    await it.until(() => it.rows().cursor() >= it.world.position());
    await it.untilSent();
    // The answer asked for the node, whose id answers 404; its folder is there.
    await it.until(() =>
      it
        .rows()
        .rereads()
        .some(({ missingSince }) => missingSince !== null),
    );
    expect(await it.names()).toEqual(["a"]);
    await it.ends(["a"]);
  });
});

describe("a creation at a plain gateway: the file is renamed before its answer", () => {
  test("another client renames it, and it is removed here: the other name stays", async () => {
    const it = await begin({}, { features: PLAIN });
    const { clock } = it.world;
    await savedAndRenamed(it);
    await clock.advance(HEARD_MS);
    expect(await it.names()).toEqual(["a", "e"]);
    await it.unlink("a");
    await it.ends(["e"]);
  });
});

describe("a creation at a gateway with revisions and without hashes", () => {
  test.each([40, 70])(
    "the file is removed here before it is heard of, and another client writes %i bytes to it: they stay",
    async (size) => {
      const it = await begin({}, { features: without("hashes") });
      const { outside } = it.world;
      await it.drain();
      it.world.setLag({ path: 0, journal: 3_000, id: 0 });
      const creation = it.once("silent-after", isCreation);
      await it.save("b");
      await it.until(creation.isSent);
      await it.unlink("b");
      const [node] = await it.nodes();
      if (node?.head == null) throw new Error("nothing was created");
      const theirs = bytesOf("theirs", size);
      await it.world.run(outside.writeContent(node.id, sourceOf(theirs), { ifHead: node.head }));
      await it.ends(["b"]);
      expect(await it.content("b")).toBe(theirs.toString("latin1"));
    },
  );
});

describe("a creation at a plain gateway: the second request is refused", () => {
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

  /** `b` is created, without an answer; lists show it some milliseconds later (`path`). */
  async function unanswered(features: Features, kind: Kind, fault: "lost-before" | "lost-after", path = 3_000) {
    const it = await begin({}, { features });
    await it.drain();
    it.world.setLag({ path, journal: 0, id: 0 });
    const creation = it.once(fault, ({ method, path }) => method === "POST" && /files\/b|nodes/.test(path));
    if (kind === "file") await it.save("b");
    else await it.world.run(it.calls().mkdir("b"));
    await it.until(creation.isSent);
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

  test.each(CASES)("$what, a $kind refused for $refusal: removed, it stays away", async (the) => {
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
    "a $kind created again by its new name before the first one is heard of (a crash: $isCrash): one is left",
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

  test("a file saved under the old name since is not in conflict with the first one", async () => {
    const it = await unanswered(PLAIN, "file", "lost-after");
    it.mount.weather.withdrawn = "node.node.update";
    await it.rename("b", "d");
    await it.save("b", "another");
    await it.world.clock.advance(1_000);
    await it.clear();
    await it.ends(["b", "d"]);
    expect(await it.content("d")).toBe(textOf("b"));
    expect(await it.content("b")).toBe(textOf("another"));
  });

  /** Files of other clients, of the same size. Where the gateway keeps attributes, even the same bytes are another file. */
  const STRANGERS = [
    { what: "plain", features: PLAIN, label: "theirs" },
    { what: "plain", features: PLAIN, label: "b" },
    { what: "plain without hashes", features: { ...PLAIN, hashes: false }, label: "theirs" },
    { what: "the plainest", features: PLAINEST, label: "theirs" },
  ];

  test.each(STRANGERS)(
    "$what: a file that another client saves under the old name ($label) is not taken for ours",
    async ({ features, label }) => {
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
      expect(await it.content("b")).toBe(textOf(label));
    },
  );
});

describe("a creation at a plain gateway: a folder without an answer", () => {
  async function lost() {
    const it = await begin({}, { features: PLAIN });
    const making = it.once("lost-after", isFolderCreation);
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

  test("it shows what another client has put into it by then", async () => {
    const it = await lost();
    const { outside } = it.world;
    const [folder] = await it.nodes();
    await it.world.run(outside.createFolder(folder?.id ?? "", "theirs"));
    await it.ends(["d", "d/theirs"]);
  });
});

describe("a move or new attributes: they arrive late, or their answer is lost", () => {
  const HOW = ["crash", "remount"] as const;

  test.each(HOW)("a move that arrives after a %s is known to be our own", async (how) => {
    const it = await begin();
    await it.save("a");
    await it.drain();
    const move = it.once("late", isMove);
    await it.rename("a", "b");
    await it.until(move.isSent);
    // Back again before anybody answered: there is nothing left to ask for.
    await it.rename("b", "a");
    await it.again(how);
    await it.ends(["a"]);
    expect(it.world.lines.join("\n")).toContain("late: PATCH");
  });

  test.each(HOW)("attributes that were taken back, and arrive after a %s, do not come back", async (how) => {
    const it = await begin();
    await it.save("a");
    await it.world.run(it.calls().chmod("a", 0o644));
    await it.drain();
    const change = it.once("late", isPatch);
    await it.world.run(it.calls().chmod("a", 0o600));
    await it.until(change.isSent);
    await it.world.run(it.calls().chmod("a", 0o644));
    await it.again(how);
    await it.ends(["a"]);
    expect((await it.world.run(it.calls().stat("a"))).mode & 0o777).toBe(0o644);
    expect([...(await there(it.world)).values()][0]).toMatchObject({ mode: 0o644 });
  });

  const CASES = [ALL_FEATURES, PLAIN].flatMap((features) =>
    HOW.map((how) => ({ features, how, kind: features.isFull ? "full" : "plain" })),
  );

  test.each(CASES)("$kind: a move whose answer is lost is recognised after a $how and a further move", async (the) => {
    const it = await begin({}, { features: the.features });
    await it.save("a");
    await it.drain();
    const move = it.once("silent-after", isMove);
    await it.rename("a", "b");
    await it.until(move.isSent);
    await it.rename("b", "c");
    await it.again(the.how);
    await it.ends(["c"]);
  });

  test("a move whose answer is lost, and another client's change on top: the key distinguishes the two", async () => {
    const it = await begin();
    await it.save("a");
    await it.drain();
    const move = it.once("silent-after", isMove);
    await it.rename("a", "b");
    await it.until(move.isSent);
    const [node] = await it.nodes();
    expect(node?.name).toBe("b");
    await it.world.run(it.world.outside.patchNode(node?.id ?? "", { attributes: { mode: 0o640 } }));
    await it.rename("b", "c");
    await it.ends(["c"]);
    expect([...(await there(it.world)).values()][0]).toMatchObject({ mode: 0o640 });
  });

  test("a move that was refused for a taken name, and is carried out late, is known to be our own", async () => {
    const { it } = await movedLate();
    it.rules.choose = () => undefined;
    await it.world.clock.advance(ALL_ARRIVED_MS);
    await it.drain();
    expect([...(await there(it.world)).keys()]).toEqual(["c"]);
    expect(await it.names()).toEqual(["c"]);
  });
});

describe("a move: carried out late, and another client changes the node at once", () => {
  test("a refused move that is carried out late undoes neither the next one nor the other client's change", async () => {
    const { it, node } = await movedLate();
    const { outside, clock } = it.world;
    await it.world.run(outside.patchNode(node?.id ?? "", { attributes: { mode: 0o640 } }));
    await clock.advance(20_000);
    expect(await it.names()).toEqual(["c"]);
    it.rules.choose = () => undefined;
    await it.ends(["c"]);
    expect([...(await there(it.world)).values()][0]).toMatchObject({ mode: 0o640 });
  });
});

describe("a new version: abandoned for a newer one", () => {
  test("it had arrived, and another client changes the file: no conflict with our own save", async () => {
    const it = await begin();
    const { outside, clock } = it.world;
    await it.save("a");
    await it.drain();
    // The journal, which would tell whose it is, is later than the refusal.
    it.world.setLag({ path: 0, journal: 30_000, id: 0 });
    const sending = it.once("silent-after", isNewVersion);
    await it.save("a", "second");
    await it.until(sending.isSent);
    const [node] = await it.nodes();
    await it.world.run(outside.patchNode(node?.id ?? "", { attributes: { mode: 0o600 } }));
    await it.save("a", "third");
    await clock.advance(20_000);
    expect(await it.names()).toEqual(["a"]);
    await it.ends(["a"]);
    expect(await it.content("a")).toBe(textOf("third"));
    expect((await there(it.world)).get("a")).toMatchObject({ mode: 0o600 });
  });

  test.each([
    ["under a key of its own", "his"],
    ["without a key", undefined],
  ])("it never arrived, and another client writes the same bytes %s: both contents stay", async (_, idempotencyKey) => {
    const it = await begin();
    const { outside, clock } = it.world;
    await it.save("a");
    await it.drain();
    it.world.setLag({ path: 0, journal: 30_000, id: 0 });
    const sending = it.once("silent-before", isNewVersion);
    await it.save("a", "second");
    await it.until(sending.isSent);
    const [node] = await it.nodes();
    const second = textOf("second");
    await it.world.run(outside.writeContent(node?.id ?? "", sourceOf(second), { idempotencyKey }));
    await it.save("a", "third");
    await clock.advance(20_000);
    await it.drain();
    const names = await it.names();
    expect(names.length).toBe(2);
    expect([...(await there(it.world)).keys()]).toEqual(names);
    const contents = await Promise.all(names.map((name) => it.content(name)));
    expect(contents.sort()).toEqual([second, textOf("third")].sort());
  });

  test("the file is removed and made again meanwhile: the name keeps its node", async () => {
    const it = await begin();
    await it.save("a");
    await it.drain();
    const [before] = await it.nodes();
    const save = it.once("silent-after", isNewVersion);
    await it.save("a", "second");
    await it.until(save.isSent);
    await it.unlink("a");
    await it.save("a", "third");
    await it.ends(["a"]);
    const [after] = await it.nodes();
    expect(after?.id).toBe(before?.id);
    const versions = await it.world.run(it.world.outside.listVersions(before?.id ?? ""));
    expect(versions.totalCount).toBe(3);
  });

  test.each(["crash", "remount", undefined] as const)(
    "its answer was lost, and the gateway is away for a quarter of an hour (%s): no conflict",
    async (how) => {
      const it = await begin();
      await it.save("a");
      await it.drain();
      const first = it.once("lost-after", isNewVersion);
      await it.save("a", "second");
      await it.until(first.isSent);
      it.mount.weather.isOffline = true;
      await it.save("a", "third");
      await it.world.clock.advance(900_000);
      if (how !== undefined) await it.again(how);
      it.mount.weather.isOffline = false;
      await it.ends(["a"]);
      expect(await it.content("a")).toBe(textOf("third"));
    },
  );
});

describe("a request: found to be carried out while its row is synced before it is sent again", () => {
  interface Case {
    readonly what: string;
    change(it: OneWorld): Promise<unknown>;
    isMeant(request: HttpRequest): boolean;
  }

  const CASES: readonly Case[] = [
    {
      what: "a creation",
      change: (it) => it.save("new"),
      isMeant: isFileCreation,
    },
    {
      what: "a new version",
      change: (it) => it.save("old", "changed"),
      isMeant: isNewVersion,
    },
    {
      what: "a move",
      change: (it) => it.rename("old", "elsewhere"),
      isMeant: isMove,
    },
  ];

  /**
   * The first answer is lost, or the daemon dies before it; the journal shows the change when it is about to be sent
   * again.
   */
  async function sentAgain({ change, isMeant }: Case, end: "lost" | "killed"): Promise<number> {
    let held: Promise<void> | undefined;
    let goOn = () => {};
    let waiting = 0;
    let it: OneWorld | undefined;
    const syncRows = async () => {
      // A start is not to be held up.
      if (held === undefined || it?.mount.process === undefined) return;
      waiting += 1;
      await held;
    };
    it = await begin({}, { engine: () => ({ syncRows }) });
    const { world, rules } = it;
    await it.save("old");
    await it.drain();
    world.setLag({ path: 10_000, journal: 10_000, id: 0 });
    let sent = 0;
    rules.choose = (request) => {
      if (!isMeant(request)) return undefined;
      sent += 1;
      held ??= new Promise<void>((resolve) => {
        goOn = resolve;
      });
      return sent > 1 ? undefined : end === "lost" ? "lost-after" : "silent-after";
    };
    await change(it);
    await it.until(() => sent === 1);
    if (end === "killed") await it.again("crash");
    await it.until(() => waiting > 0);
    await world.clock.advance(20_000);
    goOn();
    await world.clock.advance(60_000);
    await it.drain();
    world.check();
    return sent;
  }

  test.each(CASES)("$what, its answer lost: not sent again", TIMEOUT, async (it) => {
    expect(await sentAgain(it, "lost")).toBe(1);
  });

  test.each(CASES)("$what, and the daemon dies before its answer: not sent again", TIMEOUT, async (it) => {
    expect(await sentAgain(it, "killed")).toBe(1);
  });
});

describe("a change at a plain gateway: another client does the same and more in one request", () => {
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
    "%s is moved as well, and %s takes its place: it stays where it was moved to",
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

  test.each(["a", "d"] as const)("another attribute of %s is changed as well: it stays", async (path) => {
    const it = await unsent(path);
    await it.world.run(it.outside.patchNode(it.changed.id, { attributes: { mode: MODE, uid: 4711 } }));
    await it.ends(["a", "d", "d/x"]);
    expect((await it.node(path)).attributes).toMatchObject({ mode: MODE, uid: 4711 });
  });
});

describe("a change at a plain gateway: lists are late", () => {
  test.each([
    { made: "file", how: "lost" },
    { made: "folder", how: "lost" },
    { made: "file", how: "crash" },
  ])("a removed $made that late lists still show is not taken for the one made anew ($how)", async ({ made, how }) => {
    const it = await begin({}, { features: PLAIN });
    const { mkdir, rmdir } = it.calls();
    const make = () => (made === "file" ? it.save("b", "the same") : it.world.run(mkdir("b")));
    await make();
    await it.drain();
    await it.world.clock.advance(20_000);
    it.world.setLag({ path: 10_000, journal: 0, id: 0 });
    await (made === "file" ? it.unlink("b") : it.world.run(rmdir("b")));
    await it.until(() => it.asked.some((line) => line.startsWith("DELETE")));
    if (how === "crash") it.mount.weather.latencyMs = 300;
    const creation = how === "lost" ? it.once("lost-before", isCreation) : undefined;
    await make();
    await it.until(creation?.isSent ?? (() => it.rows().openRequests().length > 0));
    if (how === "crash") await it.again("crash");
    await it.ends(["b"]);
  });

  test.each([0, 8 * 3_600_000])(
    "after a sleep of %i ms and another boot a removed name does not come back with old lists",
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

describe("content: it arrived, and was refused when it was sent again", () => {
  test.each([
    { tier: "full", features: ALL_FEATURES },
    { tier: "plain", features: PLAIN },
  ])("$tier: the file is clean, and newer bytes are sent", async ({ features }) => {
    const it = await begin({}, { features });
    await it.drain();
    it.world.setLag({ path: 3_000, journal: 5_000, id: 0 });
    const creation = it.once("lost-after", isFileCreation);
    await it.save("b", "first");
    await it.until(creation.isSent);
    it.mount.weather.withdrawn = "node.node.create";
    await it.world.clock.advance(20_000);
    it.mount.weather.withdrawn = undefined;
    await it.drain();
    const inode = () => it.rows().inode("b");
    const [node] = await it.nodes();
    expect(inode()).toMatchObject({ content: "clean", originNode: node?.id, originVersion: node?.head });
    await it.save("b", "second");
    await it.ends(["b"]);
    expect(await it.content("b")).toBe(textOf("second"));
    expect(it.asked.filter((line) => / 20[01]$/.test(line) && !line.startsWith("PATCH"))).toEqual([
      "POST /v1/files/b 201",
      "PUT /v1/nodes/ID/content 200",
    ]);
  });
});

describe("a deletion: it arrives late, or its answer is lost", () => {
  test.each(["crash", "remount"] as const)(
    "a deletion that arrives after a %s removes nothing made since",
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
      expect(await it.content("a")).toBe(textOf("the same"));
    },
  );

  test("a deletion's answer is lost, and another client restores the node: it is not deleted twice", async () => {
    const it = await begin();
    await it.save("a");
    await it.drain();
    const [node] = await it.nodes();
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

describe("a deletion: carried out without an answer, and refused when it is sent again", () => {
  const BYTES = "the same";

  /**
   * These are saved with the same bytes, and `e` is removed: carried out, not answered, then refused. The journal is
   * late.
   */
  async function removed(names: readonly string[], features: Features, refusal: Partial<Weather>) {
    const it = await begin({}, { features });
    for (const name of names) await it.save(name, BYTES);
    await it.drain();
    it.world.setLag({ path: 0, journal: 30_000, id: 0 });
    const deletion = it.once("lost-after", isDeletion);
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
    "$kind, $refusal: a file made in its place is a new node, not a version of one that may be gone",
    async ({ features, refusal }) => {
      const it = await removed(["e"], features, refusal);
      const node = it.rows().dirtyNodes()[0]?.nodeId ?? "";
      await it.save("e", BYTES);
      expect(it.rows().nodeOfId(node)?.entry).toBeNull();
      await it.clear();
      await it.ends(["e"]);
      expect(await it.content("e")).toBe(textOf(BYTES));
    },
  );

  test.each(CASES)(
    "$kind, $refusal: a file with the same bytes that is moved into its place stays there",
    async ({ features, refusal }) => {
      const it = await removed(["a", "e"], features, refusal);
      await it.rename("a", "e");
      await it.clear();
      await it.ends(["e"]);
      expect(await it.content("e")).toBe(textOf(BYTES));
    },
  );

  test.each(["crash", "remount"] as const)(
    "a file that is moved into its place after a %s stays there",
    async (how) => {
      const it = await removed(["a", "e"], ALL_FEATURES, { withdrawn: "node.file.delete" });
      await it.again(how);
      await it.rename("a", "e");
      await it.clear();
      await it.ends(["e"]);
      expect(await it.content("e")).toBe(textOf(BYTES));
    },
  );

  test("refused for a scope, then for another reason: it is sent again after a while, as without the first refusal", async () => {
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

describe("a deletion: refused for good, while its name was made again", () => {
  /** `e` is removed, which does not arrive, and is refused when it is sent again. */
  async function refused(names: readonly string[], refusal: Partial<Weather>) {
    const it = await begin();
    for (const name of names) await it.save(name);
    await it.drain();
    const deletion = it.once("lost-before", isDeletion);
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
      // The refusal was about the node, and such a request is not tried again by itself.
      it.mount.weather.refusal = undefined;
      await it.world.clock.advance(FORGOTTEN_MS);
      await it.ends(["e"]);
      expect(await it.content("e")).toBe(textOf("after"));
      expect(it.asked.filter((line) => line.startsWith("DELETE") && !line.endsWith(" 403"))).toEqual([]);
    },
  );

  test("a name that is made again gets to the gateway also after a crash", async () => {
    const it = await refused(["e"], WITHDRAWN);
    await it.save("e", "after");
    await it.again("crash");
    await it.world.clock.advance(FORGOTTEN_MS);
    await it.ends(["e"]);
    expect(await it.content("e")).toBe(textOf("after"));
  });

  test("a name that is made again before the refusal arrives gets to the gateway", async () => {
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
    expect(await it.content("e")).toBe(textOf("after"));
  });

  test("a file moved to the name gets there, and the deletion of the node it leaves, which is refused too, waits", async () => {
    const it = await refused(["a", "e"], WITHDRAWN);
    await it.rename("a", "e");
    await it.world.clock.advance(FORGOTTEN_MS);
    const waiting = it.rows().dirtyNodes();
    expect(waiting.map(({ entry, baseName }) => [entry, baseName])).toEqual([[null, "a"]]);
    it.mount.weather.withdrawn = undefined;
    await it.ends(["e"]);
    expect(await it.content("e")).toBe(textOf("a"));
  });

  test("a name that came back with another client's change, and is saved with the same bytes, has nothing to send", async () => {
    const it = await refused(["e"], WITHDRAWN);
    const { world } = it;
    await edit(world, { do: "outside", edit: "write", path: "e", to: "" }, "");
    await it.until(() => it.rows().inode("e") !== undefined);
    await world.run(runProgram(it.calls(), { do: "save", path: "e", size: 40 }, "outside"));
    await world.clock.advance(60_000);
    expect(it.rows().inode("e")?.content).toBe("clean");
  });
});

describe("a deletion at a plain gateway", () => {
  /**
   * `a` is removed, and nothing is done; from then on its id answers 404 for a while, as if another server were asked.
   */
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

  test.each(["lost", "crash"] as const)("a deletion (%s): a file saved in its place is sent at once", async (how) => {
    const it = await begin({}, { features: PLAIN });
    await it.save("a", "old");
    await it.drain();
    const [old] = await it.nodes();
    it.world.setLag({ path: 0, journal: 60_000, id: 0 });
    const deletion = it.once("lost-after", isDeletion);
    await it.unlink("a");
    await it.until(deletion.isSent);
    if (how === "crash") await it.again("crash");
    // Its id answers 404.
    await it.world.clock.advance(5_000);
    await it.save("a", "new");
    await it.world.clock.advance(5_000);
    const [made, ...others] = await it.nodes();
    expect(others).toEqual([]);
    expect(made?.id).not.toBe(old?.id);
    expect((await there(it.world)).get("a")?.content).toBe(hashOf(bytesOf("new", 40)));
    await it.ends(["a"]);
  });

  test("a deletion that never arrived, of a node whose id is not found yet: a file saved in its place waits for it", async () => {
    const it = await hiddenOnceDeleted();
    await it.world.clock.advance(5_000);
    await it.save("a", "new");
    await it.world.clock.advance(5_000);
    expect(it.asked.filter((line) => line.startsWith("POST"))).toEqual(["POST /v1/files/a 201"]);
    await it.ends(["a"]);
    expect((await there(it.world)).get("a")?.content).toBe(hashOf(bytesOf("new", 40)));
  });

  test("a node that is gone unnoticed is not taken for the node of the name", async () => {
    const it = await begin({}, { features: PLAIN });
    for (const name of ["a", "e"]) await it.save(name, "the same");
    await it.drain();
    const deletion = it.once("late", isDeletion);
    await it.unlink("e");
    await it.until(deletion.isSent);
    Object.assign(it.mount.weather, WITHDRAWN);
    await it.world.clock.advance(20_000);
    await it.rename("a", "e");
    await it.world.clock.advance(FORGOTTEN_MS);
    it.mount.weather.withdrawn = undefined;
    await it.ends(["e"]);
    expect(await it.content("e")).toBe(textOf("the same"));
  });
});

describe("an exchange of two names", () => {
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
      /** The mount comes to rest with these names, and their contents are at the gateway too. */
      async ends(names: readonly string[]) {
        await it.ends(names);
        const here = await world.run(treeOf(it.calls(), { withContent: true }));
        expect(differences(here, await there(world), ["the mount", "the gateway"])).toEqual([]);
      },
      node: (path: string) => world.run(world.outside.getNodeByPath(`/${path}`, { workspace: "workspace" })),
      /** The requests that bring the names to their places. Times of folders are sent beside them. */
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

  test("at a plain gateway an exchange goes through an unused name", async () => {
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

  test("three names in a ring go through an unused name", async () => {
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

  test("names exchanged back while the answer is on its way are exchanged once more", async () => {
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
    "%s is changed elsewhere first: the exchange is refused, and asked for anew with both changes",
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

  test("bytes written to one of them are sent to its node, after the exchange", async () => {
    const it = await settled();
    const before = await it.node("a");
    await it.save("a", "newer");
    await it.exchange("a", "b");
    await it.ends(NAMES);
    expect(it.moves()).toEqual(["POST /v1/nodes/ID/exchange 200"]);
    expect((await it.node("b")).id).toBe(before.id);
    expect(await it.content("b")).toContain("newer");
  });

  test("a file that is being sent is exchanged when it has arrived", async () => {
    const it = await settled();
    const sent = it.once("silent-after", isNewVersion);
    await it.save("a", "newer");
    await it.until(sent.isSent);
    await it.exchange("a", "b");
    await it.ends(NAMES);
    expect(it.moves()).toEqual(["POST /v1/nodes/ID/exchange 200"]);
    expect(await it.content("b")).toContain("newer");
  });

  test("a file that the gateway does not have yet is created where it is by then", async () => {
    const it = await settled();
    it.mount.weather.isOffline = true;
    await it.save("new");
    await it.exchange("a", "new");
    it.mount.weather.isOffline = false;
    await it.ends([...NAMES, "new"]);
    expect(it.moves()).toEqual([]);
    expect(await it.content("a")).toContain("new");
  });

  test("a change of the other one while the answer is on its way is sent after it", async () => {
    const it = await settled();
    const sent = it.once("silent-after", isExchange);
    await it.exchange("a", "b");
    await it.until(sent.isSent);
    // Whichever of the two it is.
    for (const path of ["a", "b"]) await it.world.run(it.calls().chmod(path, 0o600));
    await it.ends(NAMES);
    expect(it.asked.filter((line) => !line.endsWith(" 200"))).toEqual([]);
  });

  test("a name removed while the answer is on its way is removed", async () => {
    const it = await settled();
    const sent = it.once("silent-after", isExchange);
    await it.exchange("a", "b");
    await it.until(sent.isSent);
    await it.unlink("a");
    await it.ends(["b", "d", "d/x", "e", "e/y"]);
    expect(it.moves()).toHaveLength(2);
  });

  test(
    "in the queue both names say that the exchange is not answered; a retry of either sends it at once",
    TIMEOUT,
    async () => {
      for (const retried of ["/a", "/b"]) {
        const it = await begin();
        const { world, rules } = it;
        await it.save("a");
        await it.save("b");
        await it.drain();
        const queue = async () => (await it.queue()).sort((x, y) => (x.path < y.path ? -1 : 1));
        let isFailing = true;
        let asked = 0;
        rules.choose = (request) => {
          if (!isExchange(request)) return undefined;
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
    },
  );
});

describe("a write that is answered after others have changed the node", () => {
  const TIERS = [
    { tier: "full", features: ALL_FEATURES, pollMs: 150 },
    { tier: "plain", features: PLAIN, pollMs: 2_000 },
  ];

  const HOW: readonly { readonly how: string; readonly fault: Fault; readonly dies: boolean }[] = [
    { how: "it is long on its way", fault: "slow-body", dies: false },
    { how: "there was none, and it is sent again", fault: "silent-after", dies: false },
    { how: "the mount died, and sends it again", fault: "silent-after", dies: true },
  ];

  /** Undone, the node is again as the mount last knew it. */
  const DONE = [
    { method: "PUT", theirs: "adds to it" },
    { method: "PATCH", theirs: "adds to it" },
    { method: "PATCH", theirs: "undoes it" },
  ] as const;

  const CASES = TIERS.flatMap((tier) => HOW.flatMap((how) => DONE.map((done) => ({ ...tier, ...how, ...done }))));

  test.each(CASES)("$tier, $method: another client $theirs before the answer, $how", async (given) => {
    const { features, pollMs, method, theirs, fault, dies } = given;
    // An entry of the journal waits no longer than this for an answer that is on its way.
    const it = await begin({}, { features, settings: { pollMs } });
    const { world, calls } = it;
    const { outside, clock } = world;
    await it.save("a");
    await it.drain();
    it.once(fault, (request: HttpRequest) => request.method === method);
    if (method === "PUT") await it.save("a", "new");
    else await world.run(calls().chmod("a", 0o600));
    const before = it.asked.length;
    for (let waited = 0; it.asked.length === before && waited < 5_000; waited += 10) await clock.advance(10);
    expect(it.asked.slice(before)).toEqual([expect.stringMatching(`^${method} .* 200$`)]);
    const [node] = await it.nodes();
    const attributes = theirs === "undoes it" ? { mode: 0o644 } : { xattrs: { [TAG]: "dGhlaXJz" } };
    await world.run(outside.patchNode(node?.id ?? "", { attributes }));
    await clock.advance(200);
    if (dies) await it.again("crash");
    // The answer has come, or does not: thousands of looks at the journal would show no more than a hundred.
    Object.assign(it.mount.settings, { pollMs: 5_000 });
    await clock.advance(2 * SETTLE_MS);
    await it.drain();
    const shown = await world.run(treeOf(calls(), { withContent: true }));
    expect(differences(shown, await there(world), ["the mount", "the gateway"])).toEqual([]);
    // Without a key nothing tells that it was done once: a plain gateway shows the node as it was before, and it is
    // done.
    const isDoneAgain = !features.isFull && fault === "silent-after";
    const undone = { tag: "", mode: isDoneAgain ? 0o600 : 0o644 };
    const both = { tag: "theirs", mode: method === "PATCH" ? 0o600 : 0o644 };
    expect(shown.get("a")).toMatchObject(theirs === "undoes it" ? undone : both);
  });
});
