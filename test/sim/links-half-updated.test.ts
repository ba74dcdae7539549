/**
 * Hard links, half updated: a linked file was saved, and only some of its nodes have the new content when its writer stops.
 * All mounts show the newest content by every name, and another mount brings up the rest.
 */
import { describe, expect, test } from "vitest";
import type { HttpRequest } from "../../src/contract/http.ts";
import { isContentWrite } from "./support/content-write.ts";
import { playHistory } from "./support/history.ts";
import { beginLinked, halfUpdated, type LinkedWorld, oneFile } from "./support/linked-world.ts";
import type { Mount, Sabotage } from "./support/mount.ts";
import { bytesOf, type Program } from "./support/programs.ts";
import type { Step } from "./support/steps.ts";
import { hashOf, treeOf } from "./support/tree.ts";
import { beginTwo, TURNS_MS } from "./support/two-world.ts";

describe("the writer stops between two nodes", () => {
  test("half updated, both names show the newest, here and on a mount that knew it, and only the writer sends", async () => {
    const it = await beginLinked();
    await it.world.run(it.calls(it.beta).list(""));
    await halfUpdated(it);
    await it.world.clock.advance(3_000);
    oneFile("new")(await it.shown(it.alpha));
    oneFile("new")(await it.shown(it.beta));
    it.rules.choose = () => undefined;
    await it.world.clock.advance(30_000);
    expect(it.changes.filter((line) => line.startsWith("beta"))).toEqual([]);
    for (const node of await it.nodes()) expect(await it.versions(node.id)).toBe(2);
  });

  test("half updated, a mount that knew nothing shows the newest by both names", async () => {
    const it = await beginLinked();
    it.beta.weather.isOffline = true;
    await halfUpdated(it);
    it.beta.weather.isOffline = false;
    await it.world.clock.advance(3_000);
    oneFile("new")(await it.shown(it.beta));
  });

  test("the writer dies between the two: it goes on where it was", async () => {
    const it = await beginLinked();
    await halfUpdated(it);
    it.alpha.crash();
    it.rules.choose = () => undefined;
    await it.world.run(it.alpha.start());
    await it.drain(it.alpha);
    await it.world.clock.advance(5_000);
    for (const mount of [it.alpha, it.beta]) oneFile("new")(await it.shown(mount));
    for (const node of await it.nodes()) expect(await it.versions(node.id)).toBe(2);
  });

  test("the writer never comes back: another mount brings the rest up", async () => {
    const it = await beginLinked();
    await it.world.run(it.calls(it.beta).list(""));
    await halfUpdated(it);
    it.alpha.crash();
    it.rules.choose = () => undefined;
    expect(new Set((await it.nodes()).map((node) => node.contentHash)).size).toBe(2);
    await it.world.clock.advance(TURNS_MS);
    await it.drain(it.beta);
    expect(new Set((await it.nodes()).map((node) => node.contentHash)).size).toBe(1);
    oneFile("new")(await it.shown(it.beta));
  });

  /** Half updated by a writer that never comes back, while beta, offline, has the name removed that was brought up. */
  async function removedMeanwhile(it: LinkedWorld, more: (other: string) => Promise<unknown>): Promise<string> {
    await halfUpdated(it, async () => {
      await it.world.clock.advance(3_000);
      await it.world.run(it.calls(it.beta).list(""));
      it.beta.weather.isOffline = true;
    });
    it.alpha.crash();
    it.rules.choose = () => undefined;
    const [newest, other] = (await it.nodes()).sort((x, y) => (x.modifiedAt < y.modifiedAt ? 1 : -1));
    if (newest === undefined || other === undefined) throw new Error("two nodes");
    await more(other.name);
    await it.world.run(it.calls(it.beta).unlink(newest.name));
    await it.world.clock.advance(3_000);
    it.beta.weather.isOffline = false;
    await it.world.clock.advance(TURNS_MS);
    await it.drain(it.beta);
    return other.name;
  }

  test("removed elsewhere by the name that has the newest content, the other name has it", async () => {
    const it = await beginLinked();
    const other = await removedMeanwhile(it, async () => undefined);
    expect((await it.shown(it.beta)).map(({ name, text }) => [name, text])).toEqual([[other, "new"]]);
    expect((await it.nodes()).map(({ name, size }) => [name, size])).toEqual([[other, 40]]);
  });

  test("removed elsewhere by that name while the other was written there: both contents are there", async () => {
    const it = await beginLinked();
    const other = await removedMeanwhile(it, (name) => it.save(it.beta, name, "theirs"));
    const shown = await it.shown(it.beta);
    expect(shown.map(({ text }) => text).sort()).toEqual(["new", "theirs"]);
    expect(shown.find(({ name }) => name === other)?.text).toBe("theirs");
    expect((await it.nodes()).length).toBe(2);
  });
});

describe("another mount comes in meanwhile", () => {
  /** By their sizes it is told whose a content is. */
  const SAVES: readonly (number | undefined)[] = [30, 35];

  const SIZE = 40;

  /** Enough for the other request to be through. */
  const REFUSALS = 5;

  const run = (mount: number, program: Program): Step => ({ do: "run", mount, program });

  /** Saved so often, each time for one of the two nodes, the latest for the one that is ahead; then the writer is away. */
  const saved = (times: number): readonly Step[] => [
    ...SAVES.slice(0, times).flatMap((size = 0): Step[] => [
      run(0, { do: "save", path: "a", size }),
      { do: "wait", ms: 1_500 },
    ]),
    { do: "weather", mount: 0, isOffline: true, latencyMs: 0, faultShare: 0 },
  ];

  const LINKED: readonly Step[] = [
    run(0, { do: "save", path: "a", size: 20 }),
    run(0, { do: "link", path: "a", to: "b" }),
    { do: "wait", ms: 4_000 },
  ];

  const sizeOf = ({ body }: HttpRequest) => (body?.kind === "upload" ? body.content.size : undefined);

  /** What the writer sends is refused by one of the nodes until somebody else writes, who gets to `first` before the other. */
  function oneByOne(first: "the one ahead" | "the one behind"): Sabotage {
    const took: string[] = [];
    let isOver = false;
    let isThrough = false;
    let refusals = 0;
    return {
      choose(request) {
        const { method, path } = request;
        if (!isContentWrite(request) && method !== "DELETE") return "none";
        const node = path.split("/")[3] ?? "";
        const save = SAVES.indexOf(sizeOf(request));
        if (save >= 0) {
          if (!isOver && took[save] === undefined && !took.includes(node)) took[save] = node;
          return isOver || took[save] === node ? "none" : "failed";
        }
        isOver = took.length > 0;
        const isAhead = node === took.at(-1);
        if (isAhead === (first === "the one ahead")) isThrough = true;
        else if (isOver && !isThrough && refusals < REFUSALS) {
          refusals += 1;
          return "failed";
        }
        return "none";
      },
    };
  }

  const PROGRAMS: readonly Program[] = [
    { do: "save", path: "a", size: SIZE },
    { do: "unlink", path: "a" },
    { do: "unlink", path: "b" },
    { do: "replace", path: "a", size: SIZE },
    { do: "replace", path: "b", size: SIZE },
    { do: "list", path: "" },
  ];

  const CASES = ([1, 2] as const).flatMap((times) =>
    (["the one ahead", "the one behind"] as const).flatMap((first) =>
      PROGRAMS.map((program) => ({ times, first, program, what: Object.values(program).join(" ") })),
    ),
  );

  test.each(CASES)("saved $times times, met by $what, $first first: nothing unseen goes", async (it) => {
    const steps = [...LINKED, ...saved(it.times), run(1, it.program), { do: "wait", ms: 30_000 } as const];
    await playHistory(steps, { mounts: 2, seed: 1, sabotage: oneByOne(it.first) });
  });

  test.each(["the one ahead", "the one behind"] as const)(
    "who has shown only what was before overwrites it, %s first: noticed",
    async (first) => {
      const steps: readonly Step[] = [
        ...LINKED,
        run(1, { do: "read", path: "a" }),
        { do: "lag", path: 8_000, journal: 8_000, id: 0 },
        ...saved(1),
        run(1, { do: "save", path: "a", size: SIZE }),
      ];
      const sabotage = oneByOne(first);
      await playHistory(steps, { mounts: 2, seed: 1, sabotage });
      const unconditional = (request: HttpRequest): HttpRequest => {
        const { "if-match": _, ...headers } = request.headers;
        return isContentWrite(request) ? { ...request, headers } : request;
      };
      const broken = playHistory(steps, {
        mounts: 2,
        seed: 1,
        sabotage: { ...oneByOne(first), request: unconditional },
      });
      await expect(broken).rejects.toThrow(/overwrote .*never showed/);
    },
  );
});

describe("a name is found later, and the name with the new content is gone", () => {
  const SIZE = 40;

  const NEW = hashOf(bytesOf("new", SIZE));

  const ANOTHER = hashOf(bytesOf("another", SIZE));

  interface Late {
    /** `a`, these and `d/c` are one file. */
    readonly names: readonly string[];
    /** What beta does when only `a` has the new content. */
    readonly programs: readonly Program[];
    /** Whether it has heard of that; else it is told afterwards. */
    readonly hasHeard: boolean;
    /** What is saved there under `a` is sent before it looks into `d`. */
    readonly isSent?: boolean;
    /** Somebody who knows of no links deletes `a`. */
    readonly isDeleted?: boolean;
    /** Hashes by path, on beta before it can send any content, on both in the end. */
    readonly shown: Readonly<Record<string, string>>;
  }

  /** Beta looks into `d` only after its programs. */
  async function comesInLate({ names, programs, hasHeard, isSent, isDeleted, shown }: Late): Promise<void> {
    const { world, alpha, beta, rules, calls, run, drain, nodes } = await beginTwo();
    const nodeOfA = async () => (await nodes()).find(({ name }) => name === "a");

    await run(alpha, { do: "mkdir", path: "d" });
    await run(alpha, { do: "save", path: "a", size: SIZE }, "old");
    for (const to of [...names, "d/c"]) await run(alpha, { do: "link", path: "a", to });
    await drain(alpha);
    await world.clock.advance(TURNS_MS);
    await world.run(calls(beta).list(""));
    const a = await nodeOfA();

    if (!hasHeard) world.setLag({ path: 0, journal: 10_000, id: 0 });
    rules.choose = ({ method, path }) => (method === "GET" || path.includes(a?.id ?? "?") ? undefined : "failed");
    await run(alpha, { do: "save", path: "a", size: SIZE }, "new");
    for (let waited = 0; (await nodeOfA())?.contentHash !== NEW; waited += 100) {
      if (waited > 30_000) throw new Error("a is never sent");
      await world.clock.advance(100);
    }
    alpha.crash();
    if (hasHeard) await world.clock.advance(3_000);
    rules.choose = ({ method, path }) => {
      const isToA = isSent === true && path.includes(a?.id ?? "?");
      return (method === "PUT" && !isToA) || method === "POST" ? "failed" : undefined;
    };
    for (const program of programs) await run(beta, program, "another");
    if (isDeleted === true) await world.run(world.outside.deleteNode(a?.id ?? "?"));
    await world.clock.advance(12_000);
    await world.run(calls(beta).list("d"));
    await world.clock.advance(1_000);

    const shownOn = async (mount: Mount) => {
      const tree = await world.run(treeOf(calls(mount), { withContent: true }));
      const files = [...tree].filter(([, { kind }]) => kind === "file");
      return Object.fromEntries(files.map(([path, { content }]) => [path, content]));
    };
    expect(await shownOn(beta)).toEqual(shown);
    rules.choose = () => undefined;
    await drain(beta);
    await world.run(alpha.start());
    for (const mount of world.mounts) await drain(mount);
    await world.clock.advance(TURNS_MS);
    for (const mount of world.mounts) expect(await shownOn(mount)).toEqual(shown);
    world.check();
  }

  const GONE: Program = { do: "unlink", path: "a" };

  /** As an editor saves: what was there has a name of its own, and the old name's node is the new file's. */
  const BACKED_UP: readonly Program[] = [
    { do: "rename", path: "a", to: "a~" },
    { do: "save", path: "a", size: SIZE },
  ];

  test("removed by the only name that has it, it stays under the others", async () => {
    await comesInLate({ names: ["b"], programs: [GONE], hasHeard: true, shown: { b: NEW, "d/c": NEW } });
  });

  test("removed before it was known to be new there, it stays under the others", async () => {
    await comesInLate({ names: ["b"], programs: [GONE], hasHeard: false, shown: { b: NEW, "d/c": NEW } });
  });

  test("moved away from the only name that has it, which is saved anew: it stays where it was moved to", async () => {
    const shown = { a: ANOTHER, "a~": NEW, "d/c": NEW };
    await comesInLate({ names: [], programs: BACKED_UP, hasHeard: true, shown });
  });

  test("moved away from the only name that has it, and the save is sent first: it stays where it was moved to", async () => {
    const shown = { a: ANOTHER, "a~": NEW, "d/c": NEW };
    await comesInLate({ names: [], programs: BACKED_UP, hasHeard: true, isSent: true, shown });
  });

  test("deleted by somebody else by the only name that has it, it stays under the others", async () => {
    await comesInLate({ names: ["b"], programs: [], hasHeard: true, isDeleted: true, shown: { b: NEW, "d/c": NEW } });
  });
});
