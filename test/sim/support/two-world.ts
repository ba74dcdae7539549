/** A world with two mounts, for histories made by hand: rules say which request meets which fault. */
import { expect } from "vitest";
import type { HttpRequest } from "../../../src/contract/http.ts";
import { SEED } from "../../support/seed.ts";
import type { Mount, Sabotage } from "./mount.ts";
import { nodesIn } from "./one-world.ts";
import { type Program, runProgram } from "./programs.ts";
import { rowsOf } from "./rows.ts";
import type { Fault } from "./transport.ts";
import { readFile } from "./tree.ts";
import { createWorld, type WorldOptions } from "./world.ts";

/** Longer than any link lease, and than any wait for another mount to act. */
export const LEASES_MS = 150_000;

type Rule = (request: HttpRequest) => Fault | "none" | undefined;

export interface More extends Pick<WorldOptions, "onAnswer" | "onStep" | "engine" | "features"> {
  /** What becomes of a request on its way. */
  readonly request?: NonNullable<Sabotage["request"]>;
}

/** Requests of both mounts meet what `rules.choose` says, fair weather if nothing. */
export async function beginTwo({ request, ...more }: More = {}) {
  const rules: { choose: Rule } = { choose: () => undefined };
  const world = await createWorld({
    seed: SEED,
    mounts: ["alpha", "beta"],
    ...more,
    sabotage: { choose: (asked) => rules.choose(asked), ...(request === undefined ? {} : { request }) },
  });
  const [alpha, beta] = world.mounts;
  if (alpha === undefined || beta === undefined) throw new Error("two mounts");
  const calls = ({ name, process }: Mount) => {
    if (process === undefined) throw new Error(`${name} is down`);
    return process.kernel;
  };
  /** The label that programs begin a file's bytes with. */
  const labelOf = async (mount: Mount, path: string) => {
    const text = (await world.run(readFile(calls(mount), path))).toString("latin1");
    return text.slice(0, text.indexOf(";"));
  };
  return {
    world,
    alpha,
    beta,
    rules,
    calls,
    labelOf,
    /** By name, the labels of the files that a mount shows in a folder. */
    async labels(mount: Mount, folder = "") {
      const all: Record<string, string> = {};
      for (const name of await world.run(calls(mount).list(folder))) {
        const path = folder === "" ? name : `${folder}/${name}`;
        if ((await world.run(calls(mount).stat(path))).kind !== "folder") all[name] = await labelOf(mount, path);
      }
      return all;
    },
    run: (mount: Mount, what: Program, label = "") => world.run(runProgram(calls(mount), what, label)),
    async drain(mount: Mount) {
      const drained = mount.process?.engine.drain({ settle: true, signal: new AbortController().signal });
      expect(await world.run(drained ?? Promise.reject(new Error("down")))).toEqual({ drained: true, left: [] });
    },
    /** Lets time go by until it is so. */
    async until(isSo: () => boolean | Promise<boolean>, limitMs = 30_000) {
      for (let waited = 0; !(await isSo()); waited += 100) {
        if (waited >= limitMs) throw new Error(`not so after ${limitMs} ms`);
        await world.clock.advance(100);
      }
    },
    /** What the tables of a mount say. */
    rows: ({ name, process }: Mount) => rowsOf(process?.database ?? expect.unreachable(`${name} is down`)),
    /** The nodes in the root at the gateway, by name. */
    nodes: () => nodesIn(world, world.workspace.root),
  };
}
