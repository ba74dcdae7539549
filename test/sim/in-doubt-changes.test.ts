/**
 * Requests in doubt: a move, a change of attributes or a new version was sent, and its answer is lost, late or a refusal,
 * or the daemon dies between the answer and what follows from it. The change takes effect once, comes back from no list,
 * and is told apart from what others did to the same node.
 */
import { describe, expect, test } from "vitest";
import { ALL_FEATURES } from "../../src/contract/features.ts";
import type { HttpRequest } from "../../src/contract/http.ts";
import { PLAIN } from "../support/features.ts";
import { isMove, movedLate } from "./support/late-move.ts";
import { ALL_ARRIVED_MS, begin, there } from "./support/one-world.ts";
import { bytesOf, sourceOf } from "./support/programs.ts";

describe("a move or attributes that arrive late, or whose answer is lost", () => {
  const isPatch = ({ method }: HttpRequest) => method === "PATCH";

  const HOW = ["crash", "remount"] as const;

  test.each(HOW)("a move that arrives after a %s is not taken for somebody else's", async (how) => {
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

  test.each(CASES)("$kind: a lost answer to a move is found again after a $how and a further move", async (the) => {
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

  test("a lost answer to a move, and somebody else's change on top: the key tells the two apart", async () => {
    const it = await begin();
    await it.save("a");
    await it.drain();
    const move = it.once("silent-after", isMove);
    await it.rename("a", "b");
    await it.until(move.isSent);
    const [node] = (await it.world.run(it.world.outside.listFolder(it.world.workspace.root))).items;
    expect(node?.name).toBe("b");
    await it.world.run(it.world.outside.patchNode(node?.id ?? "", { attributes: { mode: 0o640 } }));
    await it.rename("b", "c");
    await it.ends(["c"]);
    expect([...(await there(it.world)).values()][0]).toMatchObject({ mode: 0o640 });
  });

  test("a move that was refused for a taken name, and is carried out late, is known to be this mount's own", async () => {
    const { it } = await movedLate();
    it.rules.choose = () => undefined;
    await it.world.clock.advance(ALL_ARRIVED_MS);
    await it.drain();
    expect([...(await there(it.world)).keys()]).toEqual(["c"]);
    expect(await it.names()).toEqual(["c"]);
  });
});

describe("carried out late, and changed by somebody else at once", () => {
  test("a refused move that is carried out late does not undo the next one, nor what somebody did at once", async () => {
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

describe("a save that was given up for a newer one", () => {
  test("it had arrived, and somebody changes the file: no conflict with this mount's own save", async () => {
    const it = await begin();
    const { outside, workspace, clock } = it.world;
    await it.save("a");
    await it.drain();
    // The journal, which would tell whose it is, is later than the refusal.
    it.world.setLag({ path: 0, journal: 30_000, id: 0 });
    const sending = it.once("silent-after", ({ method, path }) => method === "PUT" && path.endsWith("/content"));
    await it.save("a", "second");
    await it.until(sending.isSent);
    const [node] = (await it.world.run(outside.listFolder(workspace.root))).items;
    await it.world.run(outside.patchNode(node?.id ?? "", { attributes: { mode: 0o600 } }));
    await it.save("a", "third");
    await clock.advance(20_000);
    expect(await it.names()).toEqual(["a"]);
    await it.ends(["a"]);
    expect(await it.content("a")).toBe(bytesOf("third", 40).toString("latin1"));
    expect((await there(it.world)).get("a")).toMatchObject({ mode: 0o600 });
  });

  test.each([
    ["under his own key", "his"],
    ["without a key", undefined],
  ])("it never arrived, and somebody writes the same bytes %s: both contents stay", async (_, idempotencyKey) => {
    const it = await begin();
    const { outside, workspace, clock } = it.world;
    await it.save("a");
    await it.drain();
    it.world.setLag({ path: 0, journal: 30_000, id: 0 });
    const sending = it.once("silent-before", ({ method, path }) => method === "PUT" && path.endsWith("/content"));
    await it.save("a", "second");
    await it.until(sending.isSent);
    const [node] = (await it.world.run(outside.listFolder(workspace.root))).items;
    const second = bytesOf("second", 40).toString("latin1");
    await it.world.run(outside.writeContent(node?.id ?? "", sourceOf(second), { idempotencyKey }));
    await it.save("a", "third");
    await clock.advance(20_000);
    await it.drain();
    const names = await it.names();
    expect(names.length).toBe(2);
    expect([...(await there(it.world)).keys()]).toEqual(names);
    const contents = await Promise.all(names.map((name) => it.content(name)));
    expect(contents.sort()).toEqual([second, bytesOf("third", 40).toString("latin1")].sort());
  });

  test("the file is removed and made again meanwhile: the name keeps its node", async () => {
    const it = await begin();
    await it.save("a");
    await it.drain();
    const [before] = (await it.world.run(it.world.outside.listFolder(it.world.workspace.root))).items;
    const save = it.once("silent-after", ({ method }) => method === "PUT");
    await it.save("a", "second");
    await it.until(save.isSent);
    await it.unlink("a");
    await it.save("a", "third");
    await it.ends(["a"]);
    const [after] = (await it.world.run(it.world.outside.listFolder(it.world.workspace.root))).items;
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
      const first = it.once("lost-after", ({ method }) => method === "PUT");
      await it.save("a", "second");
      await it.until(first.isSent);
      it.mount.weather.isOffline = true;
      await it.save("a", "third");
      await it.world.clock.advance(900_000);
      if (how !== undefined) await it.again(how);
      it.mount.weather.isOffline = false;
      await it.ends(["a"]);
      expect(await it.content("a")).toBe(bytesOf("third", 40).toString("latin1"));
    },
  );
});

describe("found to be carried out while its row is made safe for sending it again", () => {
  const TIMEOUT = { timeout: 120_000 };

  type It = Awaited<ReturnType<typeof begin>>;

  interface Case {
    readonly what: string;
    change(it: It): Promise<unknown>;
    isMeant(request: HttpRequest): boolean;
  }

  const CASES: readonly Case[] = [
    {
      what: "a birth",
      change: (it) => it.save("new"),
      isMeant: ({ method, path }) => method === "POST" && path.startsWith("/v1/files/"),
    },
    {
      what: "a new version",
      change: (it) => it.save("old", "changed"),
      isMeant: ({ method }) => method === "PUT",
    },
    {
      what: "a move",
      change: (it) => it.rename("old", "elsewhere"),
      // A folder's time goes the same way.
      isMeant: ({ method, body }) => method === "PATCH" && body?.kind === "json" && /"name"/.test(JSON.stringify(body)),
    },
  ];

  /** The first sending's answer is lost, or its sender is killed; the journal tells when it is about to be sent again. */
  async function sentAgain({ change, isMeant }: Case, end: "lost" | "killed"): Promise<number> {
    let held: Promise<void> | undefined;
    let goOn = () => {};
    let waiting = 0;
    let it: It | undefined;
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

  test.each(CASES)("$what, killed before its answer: not sent again", TIMEOUT, async (it) => {
    expect(await sentAgain(it, "killed")).toBe(1);
  });
});
