/**
 * Tokens and the gateway's key are in no file but their own, in no argument, environment or log, however much is
 * logged and whatever goes wrong; and a process that dies leaves no core file, which would hold them.
 */
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { childrenOf, until } from "../support/child.ts";
import { check, createPlace, type Place } from "../support/wsfs.ts";

let place: Place;
beforeEach(() => {
  place = createPlace();
});
afterEach(() => place.cleanUp());

/** Processes whose files are in the place, by their pids: found, not known, so that none is forgotten. */
function ofPlace(): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .map(Number)
    .filter((pid) => textOf(`/proc/${pid}/environ`).includes(`WSFS_RUNTIME_DIR=${place.path("run")}`));
}

function textOf(file: string): string {
  try {
    return readFileSync(file, "latin1");
  } catch {
    return ""; // ended meanwhile
  }
}

/** Files below the place that hold the text; the mounts are passed over. */
function filesWith(text: string): string[] {
  const skip = ["mount", "work"].flatMap((name) => ["-path", place.path(name), "-prune", "-o"]);
  const found = execFileSync("find", [place.folder, ...skip, "-type", "f", "-print0"], { encoding: "utf8" });
  return found.split("\0").filter((file) => file !== "" && textOf(file).includes(text));
}

/** What of a token is secret: who has read it all but this has not got it. */
const signature = (token: string) => token.slice(token.lastIndexOf(".") + 1);

function isNowhereElse(secrets: Readonly<Record<string, readonly string[]>>): void {
  for (const [secret, homes] of Object.entries(secrets)) {
    expect(secret.length).toBeGreaterThanOrEqual(20);
    expect(filesWith(secret).map((file) => basename(file))).toEqual(homes);
    for (const pid of ofPlace()) {
      for (const name of ["cmdline", "environ"]) expect(textOf(`/proc/${pid}/${name}`)).not.toContain(secret);
    }
  }
}

describe("a process that dies leaves no core file:", () => {
  const soft = (pid: number) => /^Max core file size\s+(\S+)/m.exec(textOf(`/proc/${pid}/limits`))?.[1];

  it("not the gateway and mount of wsfs start, nor what follows them", async () => {
    const wsfs = `'${process.execPath}' '${place.program}'`;
    check(await place.sh(`ulimit -c unlimited && mkdir work && ${wsfs} start work --background`));
    const limits = () => ofPlace().map((pid) => [textOf(`/proc/${pid}/comm`).trim(), soft(pid)]);
    const found = limits();
    expect(found.length).toBeGreaterThanOrEqual(3);
    expect(found.filter(([, limit]) => limit !== "0")).toEqual([]);
    const status = async () => JSON.parse((await place.wsfs(["status", "work", "--json"])).stdout) as { pid: number };
    const { pid } = await status();
    const folder = readlinkSync(`/proc/${pid}/cwd`);
    const before = readdirSync(folder);
    process.kill(pid, "SIGSEGV");
    await until("another follows", async () => (await status()).pid !== pid);
    expect(readdirSync(folder).filter((name) => /^core\b/.test(name) && !before.includes(name))).toEqual([]);
    expect(soft((await status()).pid)).toBe("0");
    check(await place.wsfs(["umount", "work"]));
  });

  it("not one that serves by itself, or the gateway alone", async () => {
    const started = spawnUnlimited(["gateway", "--data", "alone", "--json", "--quiet"]);
    await until("it serves", () => textOf(place.path("alone/gateway.json")).includes("process"));
    const { process: own } = JSON.parse(textOf(place.path("alone/gateway.json"))) as { process: { pid: number } };
    expect(soft(own.pid)).toBe("0");
    process.kill(own.pid, "SIGTERM");
    await started;
  });

  const spawnUnlimited = (args: readonly string[]) =>
    place.sh(`ulimit -c unlimited && exec '${process.execPath}' '${place.program}' ${args.join(" ")}`);
});

it("password and token of wsfs start are in their files alone, and the password that followed in none", async () => {
  const data = place.path("data/wsfs/gateway");
  const text = (name: string) => readFileSync(join(data, name), "utf8").trim();
  const { stdout, stderr } = check(
    await place.wsfs(["start", "work", "--background", "--log-level", "debug", "--debug"]),
  );
  check(await place.sh("echo one > work/a && cat work/a"));
  check(await place.wsfs(["drain", "work"]));
  const secrets = { [text("password")]: ["password"], [signature(text("token"))]: ["token"] };
  isNowhereElse(secrets);
  for (const secret of Object.keys(secrets)) expect(`${stdout}${stderr}`).not.toContain(secret);
  const [name = ""] = check(await place.wsfs(["gateway", "user", "list", "--data", data])).stdout.split(" ");
  const other = check(
    await place.wsfs(["gateway", "user", "password", name, "--generate", "--data", data]),
  ).stdout.trim();
  isNowhereElse({ [Object.keys(secrets)[0] ?? ""]: [], [other]: [] });
  check(await place.wsfs(["umount", "work"]));
});

it("tokens and the key stay where they are, also in the longest log and after failures of every kind", async () => {
  const gateway = await place.gateway({ args: ["--faults"] });
  const mount = await place.mount(gateway, { args: ["--log-level", "debug"] });
  const faults = async (change: object) => {
    const headers = { "content-type": "application/json" };
    const asked = { method: "PATCH", headers, body: JSON.stringify(change) };
    expect((await fetch(`${gateway.baseUrl}/faults`, asked)).status).toBe(200);
  };
  check(await mount.sh("mkdir a && echo one > a/b && cat a/b && ls -la a"));
  check(await place.wsfs(["drain", mount.dir]));
  await faults({ failRate: 1 });
  check(await mount.sh("echo two > a/b; cat a/b; ls missing; true"));
  await until("it was tried", async () =>
    /tried|does not answer/.test((await place.wsfs(["queue", mount.dir])).stdout),
  );
  await faults({ failRate: 0 });
  // A token that is refused, with an answer that says so; then the good one again.
  const wrong = `${gateway.token.slice(0, -8)}AAAAAAAA`;
  writeFileSync(gateway.tokenFile, `${wrong}\n`);
  check(await mount.sh("echo three > a/b"));
  await until("it is refused", async () => (await place.wsfs(["status", mount.dir])).stdout.includes("token"));
  await place.wsfs(["status", mount.dir, "--json", "--debug"]);
  isNowhereElse({ [signature(wrong)]: [basename(gateway.tokenFile)] });
  writeFileSync(gateway.tokenFile, `${gateway.token}\n`);
  check(await place.wsfs(["drain", mount.dir, "--timeout", "60"]));
  process.kill(mount.pid, "SIGKILL");
  check(await mount.sh("cat a/b"));
  await place.wsfs(["reload", mount.dir, "--log-level", "debug"]);
  // In a query, where it does not belong, and as what is no token.
  for (const path of [`/v1/nodes?access_token=${gateway.token}`, `/v1/nodes?path=/&token=${gateway.token}`]) {
    await (await fetch(`${gateway.baseUrl}${path}`, { headers: { authorization: `Basic ${gateway.token}` } })).text();
  }
  const key = readFileSync(join(gateway.data, "signing-key"), "latin1").trim();
  expect(childrenOf(process.pid)).toContain(gateway.pid);
  isNowhereElse({ [signature(gateway.token)]: [basename(gateway.tokenFile)], [key]: ["signing-key"] });
  await mount.umount("--drain");
  const { stdout, stderr } = await gateway.stop();
  // It says its token once, to who started it.
  expect(stdout.split(signature(gateway.token))).toHaveLength(2);
  expect(stderr).not.toContain(signature(gateway.token));
  expect(`${stdout}${stderr}`).not.toContain(key);
  isNowhereElse({ [signature(gateway.token)]: [basename(gateway.tokenFile)], [key]: ["signing-key"] });
});
