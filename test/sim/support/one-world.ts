/** A world with one mount, for histories made by hand: rules say which request meets which fault. */
import { expect } from "vitest";
import type { HttpRequest } from "../../../src/contract/http.ts";
import type { Node } from "../../../src/contract/resources.ts";
import type { Engine, QueueItem } from "../../../src/engine/api/index.ts";
import type { Sabotage } from "./mount.ts";
import { runProgram } from "./programs.ts";
import { rowsOf } from "./rows.ts";
import type { Fault } from "./transport.ts";
import { gatewayTree, readFile, treeOf } from "./tree.ts";
import { createWorld, type World, type WorldOptions } from "./world.ts";

const SEED = 1;
/** Longer than the patience of the client and the latest arrival together. */
export const ALL_ARRIVED_MS = 120_000;

type Rule = (request: HttpRequest) => Fault | "none" | undefined;

type More = Pick<WorldOptions, "engine" | "features" | "settings">;

/** A world with one mount whose requests meet what `rules.choose` says, fair weather if nothing. */
export async function begin(sabotage: Sabotage = {}, more: More = {}) {
  const rules: { choose: Rule } = { choose: () => undefined };
  const asked: string[] = [];
  const world = await createWorld({
    seed: SEED,
    mounts: ["alpha"],
    ...more,
    sabotage: { ...sabotage, choose: (request) => rules.choose(request) },
    onAnswer: (_, { method, path }, { status }) => {
      if (method !== "GET") asked.push(`${method} ${path.replace(/[0-9a-f-]{36}/, "ID")} ${status}`);
    },
  });
  const [mount] = world.mounts;
  if (mount === undefined) throw new Error("no mount");
  const calls = () => {
    if (mount.process === undefined) throw new Error("the mount is down");
    return mount.process.kernel;
  };
  const engine = () => {
    if (mount.process === undefined) throw new Error("the mount is down");
    return mount.process.engine;
  };
  const it = {
    world,
    mount,
    rules,
    asked,
    calls,
    engine,
    /** What waits to be sent, without the root, whose time is sent like anything else. */
    queue: () => world.run(queueOf(engine())),
    /** What the mount's tables say. */
    rows: () => rowsOf(mount.process?.database ?? expect.unreachable("the mount is down")),
    /** As the daemon says it of another token. */
    tokenChanged: () => mount.process?.tokenChanged(),
    /** The nodes in the root at the gateway, by name. */
    nodes: () => nodesIn(world, world.workspace.root),
    /** The first request like this meets the fault. */
    once(fault: Fault, isMeant: (request: HttpRequest) => boolean): { isSent(): boolean } {
      let isSent = false;
      rules.choose = (request) => {
        if (isSent || !isMeant(request)) return undefined;
        isSent = true;
        return fault;
      };
      return { isSent: () => isSent };
    },
    save: (path: string, label = path) => world.run(runProgram(calls(), { do: "save", path, size: 40 }, label)),
    unlink: (path: string) => world.run(calls().unlink(path)),
    rename: (from: string, to: string) => world.run(calls().rename(from, to)),
    async drain() {
      const limit = new AbortController();
      const result = await world.run(engine().drain({ settle: true, signal: limit.signal }));
      expect(result).toEqual({ drained: true, left: [] });
    },
    async again(how: "crash" | "remount") {
      if (how === "crash") mount.crash();
      else await world.run(mount.stop());
      await world.run(mount.start());
    },
    /** Lets time go by until it is so. */
    async until(isSo: () => boolean, limitMs = 30_000) {
      for (let waited = 0; !isSo(); waited += 100) {
        if (waited >= limitMs) throw new Error(`not so after ${limitMs} ms:\n${world.lines.join("\n")}`);
        await world.clock.advance(100);
      }
    },
    /** All that was changed here is acknowledged. */
    untilSent: () => it.until(() => engine().status().dirty === 0),
    names: () => world.run(calls().list("")),
    content: async (path: string) => (await world.run(readFile(calls(), path))).toString("latin1"),
    /** Everything has arrived, been told and come to rest: mount and gateway show these names. */
    async ends(names: readonly string[]) {
      await world.clock.advance(ALL_ARRIVED_MS);
      await it.drain();
      await world.clock.advance(15_000);
      world.check();
      const shown = [...(await world.run(treeOf(calls(), { withContent: true }))).keys()];
      expect([shown, world.lines.filter((line) => /kept(?! here)/.test(line))]).toEqual([names, []]);
      expect([...(await there(world)).keys()]).toEqual(names);
    },
  };
  return it;
}

export type OneWorld = Awaited<ReturnType<typeof begin>>;

/** What waits to be sent, but the time of the root. */
export async function queueOf(engine: Engine): Promise<QueueItem[]> {
  const all: QueueItem[] = [];
  for await (const some of engine.queue(100)) all.push(...some);
  return all.filter(({ path }) => path !== "/");
}

/** The nodes in a folder of the gateway, by name. */
export async function nodesIn(world: World, folder: string): Promise<Node[]> {
  const { items } = await world.run(world.outside.listFolder(folder));
  return items.sort((x, y) => (x.name < y.name ? -1 : 1));
}

export const there = (world: World) => world.run(gatewayTree(world.outside, world.workspace.root));
