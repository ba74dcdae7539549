/**
 * The supervisor dies at each of its fault points, and whatever belongs to a mount in the foreground
 * by kill -9 or a signal: each time the next `wsfs mount` of the same folder serves it again, with
 * all that was promised, or one clear line says who does.
 */
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { listServed } from "../../src/daemon/runtime-folder.ts";
import { childrenOf, until } from "../support/child.ts";
import { supervisorLabels } from "../support/step-labels.ts";
import { check, createPlace, mountsBelow, type Place, type TestGateway, type TestMount } from "../support/wsfs.ts";
import { buildWithSteps } from "./support/steps-build.ts";

const NAME = "mount";
const build = realpathSync(mkdtempSync(join(tmpdir(), "wsfs-steps-")));
let place: Place;
let gateway: TestGateway;
let files = 0;
beforeAll(async () => {
  place = createPlace(buildWithSteps(build));
  // What is kept of a mount that is gone, daemon and all, is shown here.
  place.env.WSFS_NO_RESTART = "1";
  mkdirSync(place.path(NAME));
  gateway = await place.gateway();
});
afterAll(async () => {
  await place.cleanUp();
  rmSync(build, { recursive: true, force: true });
});

/** As often as it takes for what died to be gone; every refusal is one clear line. */
async function mountAgain(): Promise<TestMount> {
  let mount: TestMount | undefined;
  await until(
    "it can be mounted again",
    async () => {
      mount = await place.mount(gateway, { name: NAME }).catch((error: Error) => {
        expect(error.message).toMatch(/wsfs: .* (is in use by process|is already a mount|was a mount whose daemon) /);
        return undefined;
      });
      return mount !== undefined;
    },
    120_000,
  );
  if (mount === undefined) throw new Error("no mount");
  return mount;
}

/** One more file, closed: it is promised. */
async function promise(dir: string): Promise<void> {
  files += 1;
  check(await place.sh(`cd '${dir}' && echo ${files} > f${files}`));
}

async function allIsThere(mount: TestMount): Promise<void> {
  const { stdout } = check(await mount.sh("cat f* | sort -n | tr '\\n' ' '"));
  expect(stdout.trim()).toBe(Array.from({ length: files }, (_, index) => index + 1).join(" "));
}

test("the supervisor, at each of its places", { timeout: 600_000 }, async () => {
  const labels = [...supervisorLabels()];
  const died: string[] = [];
  for (const label of labels) {
    const mark = place.path(`died-${label.replaceAll(/\W+/g, "-")}`);
    Object.assign(place.env, { WSFS_DIE_AT: label, WSFS_DIE_ONCE: mark });
    const mount = await place.mount(gateway, { name: NAME }).catch(() => undefined);
    if (mount !== undefined && !existsSync(mark)) {
      await promise(mount.dir);
      await place.wsfs(["umount", mount.dir], { timeoutMs: 90_000 });
    }
    if (existsSync(mark)) died.push(label);
    const again = await mountAgain();
    await allIsThere(again);
    check(await again.umount());
    expect(mountsBelow(place.folder)).toEqual([]);
  }
  expect(died).toEqual(labels);
});

const PARTS = ["cli", "supervisor", "daemon"] as const;
const GROUPS: readonly (readonly (typeof PARTS)[number][])[] = [
  ["cli"],
  ["supervisor"],
  ["daemon"],
  ["supervisor", "daemon"],
  PARTS,
];

function from(): string[] {
  const { baseUrl, workspace, tokenFile } = gateway;
  return ["--base-url", baseUrl, "--workspace", workspace, "--token-file", tokenFile];
}

function foreground() {
  const dir = place.path(NAME);
  const cli = place.spawnWsfs(["mount", dir, ...from(), "--state-dir", place.path(`${NAME}.state`)]);
  // Not the end of its output, which is the supervisor's too.
  const ended = new Promise<void>((resolve) => cli.once("exit", () => resolve()));
  cli.stdout?.resume();
  cli.stderr?.resume();
  return { dir, cli, ended };
}

const served = () => listServed(place.path("run")).filter(({ mountpoint }) => mountpoint === place.path(NAME));

test("a mount in the foreground whose processes are killed", { timeout: 600_000 }, async () => {
  for (const group of GROUPS) {
    const { dir, cli, ended } = foreground();
    await until("it is mounted", () => served().length === 1);
    await promise(dir);
    const [record] = served();
    if (record === undefined || cli.pid === undefined) throw new Error("nobody serves it");
    const pids = { cli: cli.pid, supervisor: record.supervisor.pid, daemon: record.daemon.pid };
    // Stopped first: all die at one moment, none of them sees the others go.
    for (const part of group) process.kill(pids[part], "SIGSTOP");
    for (const part of group) process.kill(pids[part], "SIGKILL");
    if (group.includes("cli")) await ended;
    if (group.length === 1 && group[0] === "cli") {
      // The mount goes on without the command that began it.
      const { stderr, code } = await place.wsfs(["mount", dir, ...from()]);
      expect([code, stderr]).toEqual([1, expect.stringMatching(/^wsfs: [^\n]* is already a mount \(of [^\n]*\)\n$/)]);
      check(await place.wsfs(["umount", dir], { timeoutMs: 90_000 }));
    }
    const again = await mountAgain();
    await allIsThere(again);
    check(await again.umount());
    await ended;
    expect(mountsBelow(place.folder)).toEqual([]);
  }
});

test("a signal at any moment of the start ends it with nothing left", { timeout: 600_000 }, async () => {
  const begun: readonly { what: string; isThere: (cli: number) => boolean }[] = [
    { what: "the command", isThere: () => true },
    { what: "a supervisor", isThere: (cli) => childrenOf(cli).length > 0 },
    { what: "a daemon", isThere: (cli) => childrenOf(cli).some((supervisor) => childrenOf(supervisor).length > 0) },
    { what: "a state dir in use", isThere: () => existsSync(place.path(`${NAME}.state/metadata.db-wal`)) },
    { what: "a mount", isThere: () => mountsBelow(place.folder).length > 0 },
    { what: "a mount that is served", isThere: () => served().length > 0 },
  ];
  const signals = ["SIGTERM", "SIGINT", "SIGHUP"] as const;
  for (const [index, { what, isThere }] of begun.entries()) {
    const { cli, ended } = foreground();
    await until(`there is ${what}`, () => isThere(cli.pid ?? 0));
    cli.kill(signals[index % signals.length]);
    await ended;
    await until("nothing is left", () => mountsBelow(place.folder).length === 0 && served().length === 0);
  }
  const again = await mountAgain();
  await allIsThere(again);
  check(await again.umount());
});
