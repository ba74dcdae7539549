/**
 * kill -9 of the daemon while programs write: what was acknowledged is there on the next mount of
 * the same state dir, and arrives at the gateway once.
 */
import { existsSync, readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { run, until } from "../support/child.ts";
import { createChance, drawSeed } from "../support/seed.ts";
import { check, createPlace, mountsBelow, type Place, type TestGateway, type TestMount } from "../support/wsfs.ts";
import { promisedBy, WORKER } from "./support/crash.ts";
import { childrenAt, versionsOf } from "./support/nodes.ts";
import { contentsOf, readTree } from "./support/tree.ts";

function linesOf(log: string): number {
  return existsSync(log) ? readFileSync(log, "utf8").split("\n").length - 1 : 0;
}

const KILLS = Number(process.env.WSFS_KILLS ?? 5);

let place: Place;
beforeAll(() => {
  place = createPlace();
  // What is kept of a mount that is gone, daemon and all, is shown here.
  place.env.WSFS_NO_RESTART = "1";
});
afterAll(() => place.cleanUp());

describe.each([
  { what: "a fast gateway", name: "fast", args: [] },
  // Uploads are under way at each kill, and some of their answers are lost.
  { what: "a slow gateway that fails now and then", name: "slow", args: ["--latency", "40", "--fail-rate", "0.05"] },
])("with $what", ({ name, args }) => {
  let gateway: TestGateway;
  let mount: TestMount | undefined;
  const seeds: number[] = [];
  const expected = new Map<string, string | null>();
  const unknown = new Set<string>();
  beforeAll(async () => {
    // The first mount needs a gateway that answers; those after it do not.
    const sound = await place.gateway({ name: `${name}-gateway` });
    await (await place.mount(sound, { name })).umount();
    await sound.stop();
    gateway = await place.gateway({ name: `${name}-gateway`, args });
  });
  afterEach(async () => {
    if (mount !== undefined) await mount.umount().catch(() => {});
    mount = undefined;
  });

  /** Names and contents promised so far, and nothing else but what nobody answered. */
  function compare(found: Record<string, string>): void {
    for (const [file, hash] of expected) {
      if (!unknown.has(file)) expect(found[file] ?? null, `${file}, ${seeds}`).toBe(hash);
    }
    expect(Object.keys(found).filter((file) => !expected.has(file) && !unknown.has(file))).toEqual([]);
  }

  test(`${KILLS} kills at random moments lose nothing and double nothing`, async () => {
    const chance = createChance();
    for (let round = 0; round < KILLS; round++) {
      const seed = drawSeed(chance);
      seeds.push(seed);
      const log = place.path(`${name}-${round}.log`);
      const killed = await place.mount(gateway, { name });
      mount = killed;
      const workers = ["a", "b"].map((worker) =>
        run(
          "/usr/bin/python3",
          ["-c", WORKER, killed.dir, `${log}-${worker}`, `${seed}-${worker}`, `${round}${worker}`],
          { env: place.env },
        ),
      );
      // Anywhere in the work of the programs: the moment is what varies.
      const promises = 5 + chance() * 120;
      await until("the programs have done something", () => {
        const lines = [linesOf(`${log}-a`), linesOf(`${log}-b`)] as const;
        // One that has not begun would find the bare folder instead of the mount, and never fail.
        return lines[0] > 0 && lines[1] > 0 && lines[0] + lines[1] > promises;
      });
      await pause(chance() * 30);
      process.kill(killed.pid, "SIGKILL");
      for (const worker of workers) check(await worker);
      await until("the mount without a daemon is gone", () => mountsBelow(place.folder).length === 0);

      for (const worker of ["a", "b"]) {
        const promised = promisedBy(readFileSync(`${log}-${worker}`, "utf8"));
        for (const [file, hash] of promised.files) expected.set(file, hash);
        for (const file of promised.open) unknown.add(file);
      }
      mount = await place.mount(gateway, { name });
      compare(contentsOf(await readTree(place, mount.dir)).files);
      if (round < KILLS - 1) await mount.umount();
    }

    if (mount === undefined) throw new Error("no mount");
    check(await place.wsfs(["drain", mount.dir, "--timeout", "180"], { timeoutMs: 200_000 }));
    expect(await mount.status()).toMatchObject({ dirty: 0, parked: 0, conflicts: 0 });
    const { files } = contentsOf(await readTree(place, mount.dir));
    compare(files);

    // At the gateway: the same files, each once, each content once.
    const nodes = await childrenAt(gateway);
    expect(Object.fromEntries([...nodes].map(([file, node]) => [file, node.contentHash]))).toEqual(files);
    for (const [file, node] of nodes) {
      const hashes = (await versionsOf(gateway, node.id)).map(({ contentHash }) => contentHash);
      expect(new Set(hashes).size, `${file} has ${hashes}`).toBe(hashes.length);
    }
  });
});
