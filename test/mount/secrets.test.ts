/**
 * Tokens and the gateway's key are in no file but their own, in no argument, environment or log, however much is
 * logged and whatever goes wrong; and a process that dies leaves no core file, which would hold them.
 */
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Browser } from "../gateway/sign-in/support.ts";
import { childrenOf, until } from "../support/child.ts";
import { signIn } from "../support/sign-in.ts";
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
    const status = () => place.status(place.path("work")) as Promise<{ pid: number }>;
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
    check(await started);
  });

  it("not a command that has a login", async () => {
    const { baseUrl, data } = await place.gateway();
    const password = check(
      await place.wsfs(["gateway", "user", "add", "ada", "--data", data, "--generate"]),
    ).stdout.trim();
    check(await place.wsfs(["env", "add", "team", "--base-url", baseUrl]));
    let limit: string | undefined;
    const onWaiting = (pid: number) => {
      limit = soft(pid);
    };
    // So that it starts without a limit.
    check(await place.sh(`prlimit --core=unlimited --pid ${process.pid}`));
    await signIn(place, { env: "team", baseUrl, password, onWaiting });
    expect(limit).toBe("0");
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

/** Of a token of any kind, whoever made it: header, claims and signature. */
const TOKEN = /eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{40,}/;

it("what a person signs in with, and what a login gives, stays where it is, however much is logged and fails", async () => {
  const gateway = await place.gateway({ args: ["--faults", "--debug"] });
  const { baseUrl, data } = gateway;
  const password = "a password of nobody else's, 0123456789";
  const user = ["ada", "--data", data];
  check(await place.wsfs(["gateway", "user", "add", ...user, "--debug"], { input: `${password}\n` }));
  check(await place.wsfs(["gateway", "grant", "set", ...user, "--workspace", gateway.workspace, "--role", "owner"]));
  check(await place.wsfs(["env", "add", "team", "--base-url", baseUrl]));
  const loginFile = place.path("state/wsfs/logins/team.json");
  const refreshToken = () => (JSON.parse(readFileSync(loginFile, "utf8")) as { refreshToken: string }).refreshToken;
  const said: string[] = [];
  const say = async (args: readonly string[]) => {
    const { stdout, stderr } = await place.wsfs([...args, "--debug"]);
    said.push(stdout, stderr);
  };
  said.push(await signIn(place, { env: "team", baseUrl, password, args: ["--debug"] }));
  const refreshTokens = [refreshToken()];
  const minted = check(await place.wsfs(["token", "--env", "team"])).stdout.trim();
  expect(minted).toMatch(TOKEN);
  refreshTokens.push(refreshToken());
  expect(refreshTokens[1]).not.toBe(refreshTokens[0]);

  const dir = place.path("mount");
  await place.sh(`mkdir '${dir}'`);
  const debug = ["--log-level", "debug"];
  await say(["mount", dir, "--env", "team", "--workspace", gateway.workspace, "--background", ...debug]);
  check(await place.sh(`echo one > '${dir}/f'`));
  check(await place.wsfs(["drain", dir, "--timeout", "60"]));
  await say(["whoami", "--env", "team"]);
  await say(["call", "GET", "/v1/workspaces", "--env", "team", "--include"]);
  await say(["call", "GET", "/v1/nowhere", "--env", "team", "--scope", "node.file.read"]);
  // Refused, unanswered, and used twice.
  await say(["token", "--env", "team", "--workspace", "nowhere"]);
  const faults = (change: object) =>
    fetch(`${baseUrl}/faults`, {
      method: "PATCH",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(change),
    });
  await faults({ failRate: 1 });
  await say(["call", "GET", "/v1/workspaces", "--env", "team"]);
  await say(["status", dir]);
  await faults({ failRate: 0 });
  const browser = new Browser(baseUrl);
  await browser.open(`/sign-in?user_code=BBBB-BBBB&password=${encodeURIComponent(password)}`);
  await (await fetch(`${baseUrl}/oauth/token?refresh_token=${refreshToken()}&access_token=${minted}`)).text();
  const again = { grant_type: "refresh_token", client_id: "wsfs", refresh_token: refreshTokens[0] ?? "" };
  await (await fetch(`${baseUrl}/oauth/token`, { method: "POST", body: new URLSearchParams(again) })).text();
  await say(["token", "--env", "team"]);
  refreshTokens.push(refreshToken());

  const isHome = (file: string) => file === loginFile || file === gateway.tokenFile;
  const holdsNone = () => {
    for (const secret of [password, encodeURIComponent(password), ...refreshTokens]) {
      expect(filesWith(secret).filter((file) => !isHome(file))).toEqual([]);
    }
    expect(filesWith("").filter((file) => !isHome(file) && TOKEN.test(textOf(file)))).toEqual([]);
    for (const pid of ofPlace()) {
      for (const name of ["cmdline", "environ"]) {
        const text = textOf(`/proc/${pid}/${name}`);
        expect([TOKEN.test(text), [password, ...refreshTokens].filter((one) => text.includes(one))]).toEqual([
          false,
          [],
        ]);
      }
    }
  };
  holdsNone();
  expect(ofPlace().length).toBeGreaterThan(2);
  await say(["logout", "--env", "team"]);
  await place.sh(`echo two > '${dir}/f'`);
  await until("it is told that nobody is signed in", async () =>
    /log in|sign in|login/.test((await place.wsfs(["status", dir])).stdout),
  );
  holdsNone();
  check(await place.wsfs(["umount", dir]));
  const { stdout, stderr } = await gateway.stop();
  // The first line says its token to who started it.
  said.push(stdout.slice(stdout.indexOf("\n")), stderr);
  for (const text of said) {
    expect(TOKEN.exec(text)?.[0]).toBeUndefined();
    expect([password, encodeURIComponent(password), ...refreshTokens].filter((one) => text.includes(one))).toEqual([]);
  }
  holdsNone();
});
