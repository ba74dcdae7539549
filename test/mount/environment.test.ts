/** A mount of an environment goes on with what the configuration file says of it, as `wsfs reload` would have it do. */
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { z } from "zod";
import { until } from "../support/child.ts";
import { signIn } from "../support/sign-in.ts";
import { check, createPlace, type Place, type TestGateway } from "../support/wsfs.ts";
import { makeAccount } from "./support/sign-in.ts";

let place: Place;
let gateway: TestGateway;
beforeEach(async () => {
  place = createPlace();
  gateway = await place.gateway();
  const password = await makeAccount(place, gateway);
  await signIn(place, { env: "team", baseUrl: gateway.baseUrl, password });
});
afterEach(() => place.cleanUp());

const status = z.object({
  pid: z.number(),
  cacheLimit: z.number(),
  disk: z.object({ keepFree: z.number() }),
  environment: z.object({ name: z.string(), file: z.string(), trouble: z.string().optional() }).optional(),
});

async function mountOf(name: string, ...args: readonly string[]) {
  const dir = place.path(name);
  check(await place.sh(`mkdir '${dir}'`));
  const from = ["--env", "team", "--workspace", gateway.workspace, "--state-dir", place.path(`${name}.state`)];
  check(await place.wsfs(["mount", dir, ...from, "--background", ...args]));
  const now = async () => status.parse(await place.status(dir));
  const cacheIs = (limit: number) => until(`it has ${limit}`, async () => (await now()).cacheLimit === limit, 30_000);
  const trouble = async () => (await now()).environment?.trouble ?? "";
  const troubleIs = (words: string) =>
    until(`its trouble is "${words}"`, async () =>
      words === "" ? (await trouble()) === "" : (await trouble()).includes(words),
    );
  const log = () => readFileSync(place.path(`${name}.state/daemon.log`), "utf8");
  return { dir, now, cacheIs, troubleIs, log };
}

const set = async (...words: readonly string[]) => check(await place.wsfs(["env", "set", "team", ...words]));
const folder = () => place.path("home/.config/wsfs");
const file = () => join(folder(), "config.json");

test("changes are taken over while programs go on; a flag goes before them, and a reload before those", async () => {
  await set("cache-size", "5M");
  const [first, second] = [await mountOf("first", "--keep-free", "1M"), await mountOf("second")];
  const before = await first.now();
  expect(before).toMatchObject({ cacheLimit: 5 * 1024 ** 2, environment: { name: "team", file: file() } });
  check(await place.sh(`mkfifo '${place.path("go")}'`));
  const script = `cd '${first.dir}'; exec 3>open; read -r _ < '${place.path("go")}'; echo written >&3; cat open`;
  const program = place.sh(script, { timeoutMs: 120_000 });

  await set("keep-free", "2M");
  await set("cache-size", "7M");
  await Promise.all([first.cacheIs(7 * 1024 ** 2), second.cacheIs(7 * 1024 ** 2)]);
  expect(await first.now()).toMatchObject({ disk: { keepFree: 1024 ** 2 } });
  expect(await second.now()).toMatchObject({ disk: { keepFree: 2 * 1024 ** 2 } });
  expect((await first.now()).pid).not.toBe(before.pid);
  expect(first.log()).toContain('"taken":["cacheSize"]');

  check(await place.wsfs(["reload", second.dir, "--cache-size", "3M"]));
  await set("cache-size", "8M");
  await first.cacheIs(8 * 1024 ** 2);
  expect(await second.now()).toMatchObject({ cacheLimit: 3 * 1024 ** 2 });
  check(await place.wsfs(["reload", second.dir, "--env", "team"]));
  expect(await second.now()).toMatchObject({ cacheLimit: 8 * 1024 ** 2, environment: { name: "team" } });
  check(await place.wsfs(["env", "unset", "team", "cacheSize"]));
  await Promise.all([first.cacheIs(10 * 1024 ** 3), second.cacheIs(10 * 1024 ** 3)]);

  check(await place.sh(`echo > '${place.path("go")}'`));
  expect(check(await program).stdout).toBe("written\n");
}, 180_000);

test("what cannot change, and a file with a fault, change nothing and are told", async () => {
  const { dir, now, cacheIs, troubleIs, log } = await mountOf("work");
  const { pid } = await now();
  const good = readFileSync(file(), "utf8");

  await set("allow-other", "1");
  await troubleIs(
    "allowOther cannot change while a workspace is mounted: the kernel takes it only when the mount is made",
  );
  expect(await place.wsfs(["reload", dir, "--env", "team"])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("allowOther cannot change while a workspace is mounted"),
  });
  writeFileSync(file(), good);
  await troubleIs("");
  writeFileSync(file(), good.slice(1));
  await troubleIs("config.json: expected JSON");
  expect(check(await place.wsfs(["status", dir])).stdout).toMatch(/^settings .*not taken over: .*config\.json/m);
  writeFileSync(file(), good.replace('"baseUrl"', '"cacheSize": "many", "baseUrl"'));
  await troubleIs(
    'config.json: environments.team.cacheSize: expected a number of bytes such as 500M or 2G, got "many"',
  );
  rmSync(file());
  await troubleIs('there is no environment "team"');
  expect((await now()).pid).toBe(pid);
  expect(log()).toContain("part of the configuration is not in effect: ");

  // As editors save: another file in its place.
  writeFileSync(place.path("beside"), good.replace('"baseUrl"', '"cacheSize": "6M", "baseUrl"'));
  renameSync(place.path("beside"), file());
  await cacheIs(6 * 1024 ** 2);
  expect((await now()).environment).not.toHaveProperty("trouble");

  rmSync(folder(), { recursive: true });
  await troubleIs('there is no environment "team"');
  mkdirSync(folder());
  writeFileSync(file(), good.replace('"baseUrl"', '"cacheSize": "9M", "baseUrl"'));
  await cacheIs(9 * 1024 ** 2);
}, 120_000);

test("a daemon that dies with a change before it is followed by one that has it", async () => {
  const { now, cacheIs } = await mountOf("work");
  const { pid } = await now();
  process.kill(pid, "SIGSTOP");
  await set("cache-size", "4M");
  process.kill(pid, "SIGKILL");
  await cacheIs(4 * 1024 ** 2);
}, 60_000);

test("a configuration that lies in the mount is not followed", async () => {
  const config = place.path("work/wsfs");
  const env = { XDG_CONFIG_HOME: place.path("work") };
  check(await place.sh(`mkdir -p '${place.path("work")}'`));
  const from = ["--base-url", gateway.baseUrl, "--workspace", gateway.workspace, "--token-file", gateway.tokenFile];
  check(await place.wsfs(["mount", place.path("work"), ...from, "--background"]));
  check(await place.sh(`mkdir '${config}'; cp '${file()}' '${config}/config.json'`));
  expect(await place.wsfs(["reload", place.path("work"), "--env", "team"], { env })).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(`the folder of the configuration ${config} lies inside the mount`),
  });
}, 60_000);
