/** Signing in against a real gateway; a login used by many at once, over answers that are lost, and after its end. */

import { chmodSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { connect } from "../../../src/client/connect.ts";
import { type DeviceLoginEvent, deviceLogin } from "../../../src/client/login/device-login.ts";
import type { Login } from "../../../src/client/login/login-file.ts";
import { describeLogin, endLogin, savedLogin, saveLogin } from "../../../src/client/login/saved-login.ts";
import { describeToken } from "../../../src/client/token-claims.ts";
import { workspacePage } from "../../../src/contract/resources.ts";
import { type Account, type AccountStore, openAccounts } from "../../../src/gateway/accounts/index.ts";
import { startGateway } from "../../../src/gateway/start.ts";
import { systemClock } from "../../../src/lib/system-clock.ts";
import { Browser, PASSWORD } from "../../gateway/sign-in/support.ts";
import { until } from "../../support/child.ts";
import { lossyWay } from "../../support/lossy-way.ts";
import { becomeStranger, STRANGER } from "../../support/stranger.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

let baseUrl: string;
let store: AccountStore;
let folder: string;
let path: string;
let ada: Account;

beforeEach(async () => {
  const dataDir = await temporaryFolder();
  folder = await temporaryFolder();
  path = join(folder, "logins", "local.json");
  const gateway = await startGateway({ dataDir, workspaces: ["main", "attic"] });
  onTestFinished(() => gateway.close());
  ({ baseUrl } = gateway);
  store = openAccounts(dataDir, systemClock);
  onTestFinished(() => store.close());
  ada = await store.accounts.add("ada", PASSWORD);
  const { items } = await asOperator(await gateway.issueToken());
  for (const { id } of items) store.accounts.setRole(ada.id, id, "owner");
});

async function asOperator(token: string) {
  const answer = await fetch(`${baseUrl}/v1/workspaces`, { headers: { authorization: `Bearer ${token}` } });
  return workspacePage.parse(await answer.json());
}

/** Signed in without the waiting between two questions of a program. */
async function signedIn(): Promise<Login> {
  const post = async (where: string, form: Record<string, string>) => {
    const body = new URLSearchParams({ client_id: "wsfs", ...form });
    return z
      .record(z.string(), z.unknown())
      .parse(await (await fetch(baseUrl + where, { method: "POST", body })).json());
  };
  const device = await post("/oauth/device", {});
  const browser = new Browser(baseUrl);
  await browser.signIn(String(device.user_code));
  await browser.submit("/sign-in/approval", { decision: "approve" });
  const grant = "urn:ietf:params:oauth:grant-type:device_code";
  const tokens = await post("/oauth/token", { grant_type: grant, device_code: String(device.device_code) });
  const login: Login = {
    server: {
      issuer: baseUrl,
      token_endpoint: `${baseUrl}/oauth/token`,
      revocation_endpoint: `${baseUrl}/oauth/revoke`,
    },
    refreshToken: String(tokens.refresh_token),
    scope: String(tokens.scope),
    account: { id: ada.id, name: ada.name },
    signedInAt: new Date().toISOString(),
  };
  await saveLogin(path, login);
  return login;
}

async function signIn(decision = "approve", scopes?: readonly string[]) {
  const events: DeviceLoginEvent[] = [];
  const browser = new Browser(baseUrl);
  const login = await deviceLogin({
    baseUrl,
    scopes,
    onEvent(event) {
      events.push(event);
      if (event.is === "code")
        void browser.signIn(event.userCode).then(() => browser.submit("/sign-in/approval", { decision }));
    },
  });
  await saveLogin(path, login);
  return { login, events };
}

describe("signing in", () => {
  test("shows a code, waits, and keeps a login that only its owner can read", { timeout: 30_000 }, async () => {
    const { events, login } = await signIn();
    expect(events.map(({ is }) => is)).toEqual(["code", "waiting", "done"]);
    expect(login.account?.name).toBe("ada");
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(statSync(join(folder, "logins")).mode & 0o777).toBe(0o700);
    expect(readdirSync(join(folder, "logins"))).toEqual(["local.json"]);
    expect(await describeLogin(path)).toMatchObject({ account: { name: "ada" }, server: { issuer: baseUrl } });
    const gateway = connect({ baseUrl, credentials: savedLogin(path) });
    const names = (await gateway.workspaces.list().all()).map(({ name }) => name);
    expect(names.sort()).toEqual(["attic", "main"]);
    await gateway.close();
  });

  test("denied", { timeout: 30_000 }, async () => {
    await expect(signIn("deny")).rejects.toMatchObject({ code: "forbidden" });
    expect(await describeLogin(path)).toBeUndefined();
  });

  test("given up", { timeout: 30_000 }, async () => {
    const stop = new AbortController();
    const onEvent = (event: DeviceLoginEvent) => event.is === "waiting" && stop.abort();
    await expect(deviceLogin({ baseUrl, signal: stop.signal, onEvent })).rejects.toMatchObject({ code: "aborted" });
  });

  test("not where it could be overheard, and not where nobody is", async () => {
    await expect(deviceLogin({ baseUrl: "http://gateway.example.com" })).rejects.toMatchObject({ code: "invalid" });
    await expect(deviceLogin({ baseUrl: "file:///etc" })).rejects.toMatchObject({ code: "invalid" });
    await expect(deviceLogin({ baseUrl: "http://127.0.0.1:1" })).rejects.toMatchObject({ code: "offline" });
  });
});

describe("a saved login", () => {
  test("mints tokens of no more than is needed, for one workspace", { timeout: 30_000 }, async () => {
    await signedIn();
    const token = await savedLogin(path, { scopes: ["node.file.read"], workspace: "main" }).token();
    expect(describeToken(token)).toMatchObject({ scopes: ["node.file.read"], workspace: expect.any(String) });
    await expect(savedLogin(path, { workspace: "nowhere" }).token()).rejects.toMatchObject({
      code: "notFound",
      message: 'no workspace "nowhere" is visible to this login',
    });
    await expect(savedLogin(path, { scopes: ["a.b.c"] }).token()).rejects.toMatchObject({ code: "unauthorized" });
    // None of that used it up.
    expect(await savedLogin(path).token()).toMatch(/^ey/);
  });

  test("keeps its token for a while, and has another one when that is refused", { timeout: 30_000 }, async () => {
    await signedIn();
    const credentials = savedLogin(path);
    const token = await credentials.token();
    expect(await credentials.token()).toBe(token);
    const other = await credentials.renew(token);
    expect(other).toMatch(/^ey/);
    expect(other).not.toBe(token);
    expect(await credentials.renew(token)).toBe(other);
  });

  test("forty programs at once, and an answer lost: none loses it", { timeout: 60_000 }, async () => {
    const login = await signedIn();
    let losses = 0;
    const way = await lossyWay(baseUrl, (url) => url === "/oauth/token" && losses++ === 3);
    const server = { ...login.server, token_endpoint: `${way}/oauth/token` };
    await saveLogin(path, { ...login, server });
    const tokens = await Promise.all(Array.from({ length: 40 }, () => savedLogin(path).token()));
    expect(new Set(tokens).size).toBe(40);
    expect(losses).toBeGreaterThan(40);
    expect(await savedLogin(path).token()).toMatch(/^ey/);
    expect(readdirSync(join(folder, "logins"))).toEqual(["local.json"]);
  });

  test("of a program that died with the lock: the next one goes on", { timeout: 30_000 }, async () => {
    await signedIn();
    writeFileSync(`${path}.lock`, "999999999");
    expect(await savedLogin(path).token()).toMatch(/^ey/);
    writeFileSync(`${path}.lock`, "");
    const old = new Date(Date.now() - 3600_000);
    utimesSync(`${path}.lock`, old, old);
    expect(await savedLogin(path).token()).toMatch(/^ey/);
  });

  test("that has ended says how to sign in, asks nobody again, and goes on with a new one", {
    timeout: 60_000,
  }, async () => {
    const login = await signedIn();
    const credentials = savedLogin(path, { howToSignIn: 'run "wsfs login"' });
    await credentials.token();
    store.records.endLogins(login.account?.id ?? "");
    const held = await credentials.token();
    await expect(credentials.renew(held)).rejects.toMatchObject({
      code: "unauthorized",
      message: 'the login has ended: run "wsfs login"',
    });
    const before = readFileSync(path, "utf8");
    await expect(credentials.token()).rejects.toMatchObject({ code: "unauthorized" });
    expect(readFileSync(path, "utf8")).toBe(before);
    await signedIn();
    expect(await credentials.token()).toMatch(/^ey/);
  });

  test("that is not there, that others may read, that is no login", async () => {
    await expect(savedLogin(path, { howToSignIn: "sign in" }).token()).rejects.toThrow("not signed in: sign in");
    await saveLogin(path, {
      server: { issuer: baseUrl, token_endpoint: `${baseUrl}/oauth/token` },
      refreshToken: "s3cret",
      scope: "",
      account: null,
      signedInAt: new Date().toISOString(),
    });
    chmodSync(path, 0o640);
    await expect(savedLogin(path).token()).rejects.toThrow(/others may read this login/);
    chmodSync(path, 0o600);
    writeFileSync(path, '{"refreshToken": "s3cret"');
    const error = await savedLogin(path)
      .token()
      .catch((cause: Error) => cause);
    expect(String(error)).toContain("not a login of this program");
    expect(String(error)).not.toContain("s3cret");
  });

  test.skipIf(process.getuid?.() !== 0)(
    "is told no stranger who has taken the gateway's port (needs root)",
    async () => {
      const login = await signedIn();
      const stranger = becomeStranger(0);
      onTestFinished(() => stranger.end());
      await stranger.listens();
      const there = `http://127.0.0.1:${stranger.port()}`;
      const server = {
        issuer: there,
        token_endpoint: `${there}/oauth/token`,
        revocation_endpoint: `${there}/oauth/revoke`,
      };
      await saveLogin(path, { ...login, server });
      const refused = { code: "offline", message: expect.stringContaining(`user ${STRANGER} listens there`) };
      await expect(savedLogin(path).token()).rejects.toMatchObject(refused);
      await expect(endLogin(path)).rejects.toMatchObject(refused);
      await expect(deviceLogin({ baseUrl: there })).rejects.toMatchObject(refused);
      expect(stranger.heard()).toBe("");
      // So it would be heard.
      const body = new URLSearchParams({ refresh_token: login.refreshToken });
      const stop = new AbortController();
      fetch(`${there}/oauth/token`, { method: "POST", body, signal: stop.signal }).catch(() => {});
      await until("it is heard", () => stranger.heard().includes(login.refreshToken));
      stop.abort();
    },
  );

  test("is ended at the gateway and removed; where that is not reached it stays, unless it is forced", {
    timeout: 60_000,
  }, async () => {
    const login = await signedIn();
    expect(await endLogin(path)).toBe(true);
    expect(await endLogin(path)).toBe(false);
    await saveLogin(path, login);
    await expect(savedLogin(path).token()).rejects.toThrow("the login has ended");
    const server = { ...login.server, revocation_endpoint: "http://127.0.0.1:1/oauth/revoke" };
    await saveLogin(path, { ...login, server });
    await expect(endLogin(path)).rejects.toMatchObject({ code: "offline" });
    expect(await describeLogin(path)).toBeDefined();
    expect(await endLogin(path, { isForced: true })).toBe(true);
    expect(await describeLogin(path)).toBeUndefined();
  });
});
