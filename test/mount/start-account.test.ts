/**
 * What `wsfs start` gives its user: an account that owns the workspaces, a password in a file, and a token of hours that its
 * mount lives on, whatever ends the one before.
 */
import { once } from "node:events";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { userInfo } from "node:os";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, expect, test } from "vitest";
import { z } from "zod";
import { accountStatus } from "../../src/contract/resources.ts";
import { SCOPES } from "../../src/contract/scopes.ts";
import { readGatewayRecord, runningGateway, writeGatewayRecord } from "../../src/daemon/gateway-record.ts";
import { identifyProcess, isAlive } from "../../src/daemon/processes.ts";
import { signToken } from "../../src/gateway/tokens.ts";
import { systemClock } from "../../src/lib/system-clock.ts";
import { Browser } from "../gateway/sign-in/support.ts";
import { until } from "../support/child.ts";
import { check, createPlace, type Place } from "../support/wsfs.ts";

const YEAR_SECONDS = 365 * 86_400;
const user = userInfo().username;

let place: Place;
beforeEach(() => {
  place = createPlace();
});
afterEach(() => place.cleanUp());

const data = () => place.path("data/wsfs/gateway");
const held = () => readFileSync(`${data()}/token`, "utf8").trim();
const gatewayUser = async (...args: string[]) =>
  check(await place.wsfs(["gateway", "user", ...args, "--data", data()]));
const users = async () => (await gatewayUser("list")).stdout;

const started = z.object({
  ...{ baseUrl: z.string(), workspace: z.string(), account: z.string().nullable() },
  passwordFile: z.string().nullable(),
});
/** The folder's names are known from then on, with a good token and without. */
async function start(): Promise<z.infer<typeof started>> {
  const { stdout } = check(await place.wsfs(["start", "d", "--background", "--json"]));
  check(await place.sh("ls d"));
  return started.parse(JSON.parse(stdout));
}

/** What is written now reaches the gateway. */
async function works(name: string): Promise<void> {
  check(await place.sh(`echo ${name} > d/${name}`));
  check(await place.wsfs(["drain", "d", "--timeout", "60"], { timeoutMs: 90_000 }));
}

async function end(): Promise<void> {
  check(await place.wsfs(["umount", "d", "--drain"]));
  await until("the gateway has ended", () => runningGateway(data()) === undefined);
}

async function whose(baseUrl: string, token = held()) {
  const answer = await fetch(`${baseUrl}/v1/account`, { headers: { authorization: `Bearer ${token}` } });
  if (!answer.ok) return { status: answer.status, account: null, hours: 0 };
  const { account, expiresAt } = accountStatus.parse(await answer.json());
  const hours = Math.round((Date.parse(expiresAt ?? "") - Date.now()) / 3_600_000);
  return { status: answer.status, account: account?.name ?? null, hours };
}

async function killGateway(): Promise<void> {
  const identity = runningGateway(data())?.process;
  if (identity === undefined) throw new Error("no gateway runs");
  process.kill(identity.pid, "SIGKILL");
  await until("it has ended", () => !isAlive(identity));
}

/** As the gateway's command line would have made it, at another time. */
const ownToken = (workspace: string, client: string | undefined, ttlSeconds: number) =>
  signToken(readFileSync(`${data()}/signing-key`), systemClock, { scopes: SCOPES, workspace, client, ttlSeconds });
const boundTo = (token: string) =>
  z.object({ workspace: z.string() }).parse(JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString()))
    .workspace;

test("a person signs in by what start says, and is who the journal names", async () => {
  const { baseUrl, account, passwordFile, workspace } = await start();
  expect([account, passwordFile]).toEqual([user, `${data()}/password`]);
  expect(statSync(`${data()}/password`).mode & 0o777).toBe(0o600);
  const password = readFileSync(`${data()}/password`, "utf8").trim();
  await works("f");

  const login = place.spawnWsfs(["login", "--env", "local", "--json"]);
  const ended = new Promise((resolve) => login.on("exit", resolve));
  if (login.stdout === null) throw new Error("nothing is read of it");
  for await (const line of createInterface(login.stdout)) {
    const { code } = z.object({ code: z.object({ userCode: z.string() }).optional() }).parse(JSON.parse(line));
    if (code === undefined) continue;
    const browser = new Browser(baseUrl);
    const page = await browser.open(`/sign-in?user_code=${code.userCode}`);
    expect(page).toContain(`${data()}/password`);
    expect(page).not.toContain(password);
    await browser.submit("/sign-in/password", { name: user, password });
    await browser.submit("/sign-in/approval", { decision: "approve" });
  }
  expect(await ended).toBe(0);
  expect(check(await place.wsfs(["whoami"])).stdout).toMatch(
    new RegExp(`^account +${user}\n(.*\n)*workspaces .*owner`),
  );
  const journal = ["call", "GET", "/v1/journal", "--workspace", workspace, "--query", "orderBy=-position"];
  const { items } = JSON.parse(check(await place.wsfs(journal)).stdout) as { items: unknown[] };
  expect(items[0]).toMatchObject({ by: { account: user } });
});

test("all tokens are revoked under the mount: it goes on by another one, and so do programs that read the file", async () => {
  const { baseUrl } = await start();
  const first = held();
  expect(await whose(baseUrl)).toEqual({ status: 200, account: user, hours: 8 });
  check(await place.wsfs(["gateway", "token", "--data", data(), "--revoke-all"]));
  expect((await whose(baseUrl, first)).status).toBe(401);
  await works("a");
  expect(await whose(baseUrl)).toEqual({ status: 200, account: user, hours: 8 });
});

test("a token that ended while neither gateway nor machine was up is followed by another when they are", async () => {
  const { baseUrl } = await start();
  const bound = boundTo(held());
  process.kill(runningGateway(data())?.process?.pid ?? 0, "SIGSTOP");
  writeFileSync(`${data()}/token`, `${ownToken(bound, "wsfs-start", 0)}\n`);
  await killGateway();
  await works("a");
  expect(await whose(baseUrl)).toEqual({ status: 200, account: user, hours: 8 });
});

test("two starts at once make one account, whose password the file has", async () => {
  const other = async () => check(await place.wsfs(["start", "e", "--state-dir", "other", "--background", "--json"]));
  const [one, two] = await Promise.all([start(), other()]);
  expect(started.parse(JSON.parse(two.stdout))).toEqual(one);
  expect(await users()).toBe(`${user}  owner of workspace\n`);
  check(await place.wsfs(["umount", "e"]));
  await works("a");
});

test("who changed the password or removed the account gets neither again; the mount goes on", async () => {
  const { baseUrl } = await start();
  const changed = await gatewayUser("password", user, "--generate");
  expect(changed.stderr).toContain(`${data()}/password had the old one, and was removed\n`);
  check(await place.wsfs(["umount", "d"]));
  expect(await start()).toMatchObject({ account: user, passwordFile: null });
  await gatewayUser("remove", user);
  await works("a");
  expect(await whose(baseUrl)).toEqual({ status: 200, account: null, hours: 8 });
  check(await place.wsfs(["umount", "d"]));
  const again = check(await place.wsfs(["start", "d", "--background"]));
  expect(again.stdout).toContain(`  account     those of wsfs gateway user list --data '${data()}'\n`);
  expect(await users()).toMatch(/^There are no accounts/);
  await works("b");
});

test("a data folder and a token of a former release: an account for its user, and the old token goes on", async () => {
  await start();
  const bound = boundTo(held());
  await end();
  // As that release left it.
  const lasting = ownToken(bound, undefined, YEAR_SECONDS);
  check(await place.sh(`cd '${data()}' && rm accounts.db* password`));
  writeFileSync(`${data()}/token`, `${lasting}\n`);
  const { baseUrl, account } = await start();
  expect(account).toBe(user);
  expect(await whose(baseUrl)).toEqual({ status: 200, account: user, hours: 8 });
  expect(await whose(baseUrl, lasting)).toEqual({ status: 200, account: null, hours: YEAR_SECONDS / 3600 });
  // The mount of that release, which is still there, is given a gateway of this one.
  writeFileSync(`${data()}/token`, `${lasting}\n`);
  await killGateway();
  await works("a");
  expect(held()).toBe(lasting);
});

test("a gateway of a former release renews nothing: the token lasts, until it is followed under one of this release", async () => {
  await start();
  await end();
  const record = readGatewayRecord(data());
  const program = "require('http').createServer((q, a) => a.end()).listen(0, () => console.log(s.address().port))";
  const other = place.spawn(process.execPath, ["-e", `const s = ${program}`]);
  const [port] = z.tuple([z.instanceof(Buffer)]).parse(await once(other.stdout ?? other, "data"));
  const identity = identifyProcess(other.pid ?? 0);
  if (record === undefined || identity === undefined) throw new Error("no gateway");
  const { renewsToken: _, hasSocket: __, ...former } = record;
  writeGatewayRecord(data(), { ...former, baseUrl: `http://127.0.0.1:${Number(port)}`, process: identity });
  // No gateway at all, but one that is there; the token is written before it is used.
  expect((await place.wsfs(["start", "d"])).code).toBe(1);
  const lasting = held();
  other.kill();
  await until("it has ended", () => !isAlive(identity));
  const { baseUrl } = await start();
  expect(await whose(baseUrl, lasting)).toEqual({ status: 200, account: user, hours: YEAR_SECONDS / 3600 });
  expect(await whose(baseUrl)).toEqual({ status: 200, account: user, hours: 8 });
});
