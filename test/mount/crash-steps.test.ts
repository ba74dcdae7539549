/**
 * Real processes die by kill -9 at each fault point, once, while a program makes every kind of
 * change; what died is started as a user would. What was promised is there each time, and in the
 * end mount and gateway show the same, each file once. Places with more passings are
 * test/sim/crash.test.ts.
 */
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, test } from "vitest";
import { run, until } from "../support/child.ts";
import { daemonLabels, engineLabels, gatewayLabels } from "../support/step-labels.ts";
import { check, createPlace, mountsBelow, type Place, type TestGateway, type TestMount } from "../support/wsfs.ts";
import { CHANGES } from "./support/changes.ts";
import { promisedBy } from "./support/crash.ts";
import { contentsOf, readGateway, readTree } from "./support/tree.ts";

const DIE_AT_STEP = fileURLToPath(new URL("../support/die-at-step.mjs", import.meta.url));

/** What only a second writer, a lost answer or somebody else brings about: died at in the simulation. */
const SIMULATED = new Set([
  "upload: given up for a writer",
  "upload: copied for a writer",
  "request: will be sent again",
  "request: content",
  "request: copy",
  "request: delete",
  "request: patch",
  "request: reference",
  "cut: copied",
  "cut: file gone",
  "listing: slice kept",
  "take: not committed",
  "fetch: part written",
  "fetch: whole checked",
  "evict: file gone",
  "evict: row gone",
]);

/** Passed by whoever comes after one that died there. */
const AFTER = new Map([
  ["write: bytes in the file", "recover: a file a writer had"],
  ["gateway: blob in place", "gateway: blob collected"],
]);
const AFTERS = new Set(AFTER.values());

function inOrder(labels: Iterable<string>): string[] {
  const first = [...labels].filter((label) => !SIMULATED.has(label) && !AFTERS.has(label));
  return first.flatMap((label) => [label, AFTER.get(label) ?? []].flat());
}

const DAEMON = inOrder([...engineLabels(), ...daemonLabels()]);
const MIDDLE = Math.ceil(DAEMON.length / 2);
/** Both run at once. */
const HALVES = [DAEMON.slice(0, MIDDLE), DAEMON.slice(MIDDLE)];

/** Its write-ahead log must grow. */
const manyFor = (label: string) => (label.startsWith("checkpoint") ? 700 : 0);
/** Below those the system gives out. */
const PORT = 20_000 + (process.pid % 10_000);

interface Chain {
  readonly place: Place;
  readonly log: string;
  lives: number;
}

describe.concurrent("killed at each fault point", () => {
  const places: Place[] = [];
  function begin(name: string): Chain {
    const place = createPlace();
    places.push(place);
    return { place, log: place.path(`${name}.log`), lives: 0 };
  }
  afterAll(async () => {
    for (const place of places) await place.cleanUp();
  });

  /** The next program that comes by the label dies; true once one has. */
  function arm({ place }: Chain, label: string | undefined): () => boolean {
    const once = place.path("died");
    if (label === undefined) {
      delete place.env.NODE_OPTIONS;
      return () => false;
    }
    const mark = `${once}-${label.replaceAll(/\W+/g, "-")}`;
    Object.assign(place.env, { NODE_OPTIONS: `--import ${DIE_AT_STEP}`, WSFS_DIE_AT: label, WSFS_DIE_ONCE: mark });
    return () => existsSync(mark);
  }

  async function work(chain: Chain, dir: string, many: number): Promise<void> {
    const args = ["-c", CHANGES, dir, chain.log, `n${chain.lives}`, String(many)];
    chain.lives += 1;
    check(await run("/usr/bin/python3", args, { env: { ...chain.place.env, NODE_OPTIONS: "" }, timeoutMs: 120_000 }));
  }

  async function allIsThere(chain: Chain, gateway: TestGateway, mount: TestMount): Promise<void> {
    const { place } = chain;
    check(await place.wsfs(["drain", mount.dir, "--timeout", "180"], { timeoutMs: 200_000 }));
    expect(await mount.status()).toMatchObject({ dirty: 0, parked: 0, conflicts: 0 });
    const shown = contentsOf(await readTree(place, mount.dir));
    expect(await readGateway(place, gateway)).toEqual(shown);
    const log = readFileSync(chain.log, "utf8");
    const promised = promisedBy(log);
    const open = unanswered(log);
    for (const [name, what] of promised.files) {
      if (open.has(name) || what?.startsWith("-> ") === true) continue;
      const found = shown.files[name] ?? (shown.folders.includes(name) ? "folder" : null);
      expect([name, found]).toEqual([name, what]);
    }
    check(await mount.umount());
  }

  for (const [half, labels] of HALVES.entries()) {
    test(`the daemon, at ${labels.length} places (${half + 1} of 2)`, { timeout: 900_000 }, async () => {
      const chain = begin(`daemon-${half}`);
      const { place } = chain;
      const gateway = await place.gateway();
      const seen: string[] = [];
      for (const label of labels) {
        const isDead = arm(chain, label);
        let mount = await place.mount(gateway).catch(() => undefined);
        if (mount === undefined) {
          expect(isDead(), `${label}: the mount did not start`).toBe(true);
          await until("nothing is mounted", () => mountsBelow(place.folder).length === 0);
          mount = await place.mount(gateway);
        }
        await work(chain, mount.dir, manyFor(label));
        if (!isDead() && manyFor(label) > 0) await until(`it dies at "${label}"`, isDead);
        if (!isDead()) await place.wsfs(["drain", mount.dir, "--timeout", "60"], { timeoutMs: 90_000 });
        if (!isDead()) await place.wsfs(["umount", mount.dir], { timeoutMs: 90_000 });
        if (isDead()) seen.push(label);
        await until("nothing is mounted", async () => {
          if (mountsBelow(place.folder).length === 0) return true;
          if (!isDead()) return false;
          // It died before, and was mounted again since.
          await place.wsfs(["umount", mount.dir], { timeoutMs: 90_000 });
          return false;
        });
      }
      expect(labels.filter((label) => !seen.includes(label))).toEqual([]);
      arm(chain, undefined);
      await allIsThere(chain, gateway, await place.mount(gateway));
    });
  }

  test("the gateway, at each of its places", { timeout: 900_000 }, async () => {
    const chain = begin("gateway");
    const { place } = chain;
    const args = ["--port", String(PORT)];
    let mount: TestMount | undefined;
    let gateway: TestGateway | undefined;
    for (const label of inOrder(gatewayLabels())) {
      const isDead = arm(chain, label);
      gateway = await place.gateway({ args }).catch(() => undefined);
      if (gateway === undefined) {
        expect(isDead(), `${label}: the gateway did not start`).toBe(true);
        gateway = await place.gateway({ args });
      }
      arm(chain, undefined);
      mount ??= await place.mount(gateway);
      await work(chain, mount.dir, 0);
      await until(`it dies at "${label}"`, isDead);
      await gateway.stop();
    }
    gateway = await place.gateway({ args });
    if (mount === undefined) throw new Error("no mount");
    await allIsThere(chain, gateway, mount);
  });
});

/** Names whose last change nobody answered: anything may be there, for good. */
function unanswered(log: string): Set<string> {
  const open = new Set<string>();
  for (const line of log.split("\n").slice(0, -1)) {
    const said = JSON.parse(line) as { begin?: string[]; done?: Record<string, unknown> };
    for (const name of said.begin ?? []) open.add(name);
    for (const name of Object.keys(said.done ?? {})) open.delete(name);
  }
  return open;
}
