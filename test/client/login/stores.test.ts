/** Where a login is kept: a file, or a keyring and a file that says so; and at which issuer it is made. */
import { existsSync, readFileSync, statSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { RemoteError } from "../../../src/client/errors.ts";
import type { Keyring } from "../../../src/client/keyring.ts";
import { deviceLogin } from "../../../src/client/login/device-login.ts";
import type { Login } from "../../../src/client/login/login-file.ts";
import { checkStore, describeLogin, endLogin, savedLogin, saveLogin } from "../../../src/client/login/saved-login.ts";
import { openAccounts } from "../../../src/gateway/accounts/index.ts";
import { startGateway } from "../../../src/gateway/start.ts";
import { systemClock } from "../../../src/lib/system-clock.ts";
import { Browser, PASSWORD } from "../../gateway/sign-in/support.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

let baseUrl: string;
let path: string;

beforeEach(async () => {
  const dataDir = await temporaryFolder();
  path = join(await temporaryFolder(), "logins", "local.json");
  const gateway = await startGateway({ dataDir, workspaces: ["main"] });
  onTestFinished(() => gateway.close());
  ({ baseUrl } = gateway);
  const store = openAccounts(dataDir, systemClock);
  onTestFinished(() => store.close());
  await store.accounts.add("ada", PASSWORD);
});

function signIn(issuer?: string): Promise<Login> {
  const browser = new Browser(baseUrl);
  const approve = async (code: string) => {
    await browser.signIn(code);
    await browser.submit("/sign-in/approval", { decision: "approve" });
  };
  return deviceLogin({ baseUrl, issuer, onEvent: (event) => void (event.is === "code" && approve(event.userCode)) });
}

/** As a service of the system: each answer comes later. `isBroken`: it gives none. */
function memoryKeyring() {
  const secrets = new Map<string, string>();
  const state = { isBroken: false };
  const answering = async <T>(work: () => T): Promise<T> => {
    await new Promise(setImmediate);
    if (state.isBroken) throw new RemoteError("unauthorized", "the system keyring does not answer: no bus");
    return work();
  };
  const keyring: Keyring = {
    get: (name) => answering(() => secrets.get(name)),
    set: (name, secret) => answering(() => void secrets.set(name, secret)),
    remove: (name) => answering(() => void secrets.delete(name)),
  };
  return { keyring, secrets, state };
}

const text = () => readFileSync(path, "utf8");

test("a login in the keyring: the file holds no secret, and many programs at once do not lose it", async () => {
  const { keyring, secrets } = memoryKeyring();
  const login = await signIn();
  await saveLogin(path, login, { store: "keyring", keyring });
  expect(JSON.parse(text())).toEqual({ version: 1, store: "keyring" });
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect([...secrets.keys()]).toEqual([path]);
  const credentials = Array.from({ length: 10 }, () => savedLogin(path, { keyring }));
  const tokens = await Promise.all(credentials.map((each) => each.token()));
  expect(new Set(tokens).size).toBe(10);
  expect(secrets.get(path)).not.toContain(login.refreshToken);
  expect(await describeLogin(path, { keyring })).toMatchObject({ account: { name: "ada" }, store: "keyring" });
  expect(JSON.parse(text())).toEqual({ version: 1, store: "keyring" });
  expect(await endLogin(path, { keyring })).toBe(true);
  expect([existsSync(path), secrets.size]).toEqual([false, 0]);
}, 60_000);

test("it stays where the one before was, and is in one place after it is moved", async () => {
  const { keyring, secrets, state } = memoryKeyring();
  const login = await signIn();
  const store = async () => (await describeLogin(path, { keyring }))?.store;
  await saveLogin(path, login, { keyring });
  expect([await store(), text().includes(login.refreshToken)]).toEqual(["file", true]);
  await saveLogin(path, login, { keyring, store: "keyring" });
  expect([await store(), text().includes(login.refreshToken)]).toEqual(["keyring", false]);
  await saveLogin(path, login, { keyring });
  expect([await store(), secrets.size]).toEqual(["keyring", 1]);
  state.isBroken = true;
  await saveLogin(path, login, { keyring, store: "file" });
  state.isBroken = false;
  expect([await store(), text().includes(login.refreshToken)]).toEqual(["file", true]);
  await saveLogin(path, login, { keyring, store: "keyring" });
  await saveLogin(path, login, { keyring, store: "file" });
  expect([await store(), secrets.size]).toEqual(["file", 0]);
}, 60_000);

test("where no keyring answers nothing is saved elsewhere, and the login is over", async () => {
  const { keyring, state } = memoryKeyring();
  const login = await signIn();
  state.isBroken = true;
  const said = "the system keyring does not answer: no bus";
  await expect(checkStore(path, { store: "keyring", keyring })).rejects.toThrow(said);
  await checkStore(path, { keyring });
  await expect(saveLogin(path, login, { store: "keyring", keyring })).rejects.toThrow(said);
  expect(existsSync(path)).toBe(false);
  await saveLogin(path, login, { store: "file", keyring });
  await expect(savedLogin(path, { keyring }).token()).rejects.toThrow("the login has ended");
}, 60_000);

test("a keyring that has lost it, or answers no more, is said; a login after it is used at once", async () => {
  const { keyring, secrets, state } = memoryKeyring();
  await saveLogin(path, await signIn(), { store: "keyring", keyring });
  await checkStore(path, { keyring });
  const credentials = savedLogin(path, { keyring, howToSignIn: 'run "wsfs login"' });
  state.isBroken = true;
  await expect(credentials.token()).rejects.toThrow("the system keyring does not answer: no bus");
  await expect(endLogin(path, { keyring })).rejects.toThrow("does not answer");
  state.isBroken = false;
  expect(await credentials.token()).toMatch(/^ey/);
  secrets.clear();
  const other = savedLogin(path, { keyring, howToSignIn: 'run "wsfs login"' });
  await expect(other.token()).rejects.toThrow('not signed in: run "wsfs login"');
  await saveLogin(path, await signIn(), { keyring });
  expect(await other.token()).toMatch(/^ey/);
  state.isBroken = true;
  expect(await endLogin(path, { keyring, isForced: true })).toBe(true);
  expect(existsSync(path)).toBe(false);
}, 60_000);

test("another issuer than the gateway: of OAuth, or of OpenID alone; only https or this machine", async () => {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url ?? "");
    const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    if (request.url !== "/.well-known/openid-configuration") return void response.writeHead(404).end();
    const at = (name: string) => `${baseUrl}/oauth/${name}`;
    const said = { issuer, token_endpoint: at("token"), device_authorization_endpoint: at("device") };
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(said));
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const login = await signIn(issuer);
  expect(asked).toEqual(["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"]);
  expect(login).toMatchObject({
    server: { issuer, token_endpoint: `${baseUrl}/oauth/token` },
    account: { name: "ada" },
  });
  await saveLogin(path, login);
  expect(await savedLogin(path).token()).toMatch(/^ey/);
  await expect(signIn("http://login.example.com")).rejects.toThrow("a login over http can be overheard");
}, 60_000);
