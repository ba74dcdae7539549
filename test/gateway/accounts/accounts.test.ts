/** Accounts, roles, logins and keys: what several processes on one folder see, and what a stolen file gives away. */
import { createHmac, createPrivateKey, createPublicKey, sign } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import path from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { includesRole } from "../../../src/contract/roles.ts";
import { readAccessToken } from "../../../src/gateway/accounts/access-tokens.ts";
import {
  AccountError,
  type AccountStore,
  accountsInMemory,
  accountsPath,
  openAccounts,
} from "../../../src/gateway/accounts/index.ts";
import { openSqlite } from "../../../src/lib/sqlite/index.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { createVirtualClock } from "../../support/virtual-clock.ts";

const clock = createVirtualClock();
const PASSWORD = "correct horse battery";
const ISSUER = "http://127.0.0.1:1234";

async function opened(folder: string): Promise<AccountStore> {
  const store = openAccounts(folder, clock);
  onTestFinished(() => store.close());
  return store;
}

describe("accounts", () => {
  test("a password is right for its account alone, and stands nowhere in the folder", async () => {
    const folder = await temporaryFolder();
    const { accounts } = await opened(folder);
    const ada = await accounts.add("ada", PASSWORD);
    await accounts.add("bob", "another password");
    expect(await accounts.checkPassword("ada", PASSWORD)).toEqual(ada);
    expect(await accounts.checkPassword("bob", PASSWORD)).toBeUndefined();
    expect(await accounts.checkPassword("eve", PASSWORD)).toBeUndefined();
    expect(await accounts.checkPassword("ada", "")).toBeUndefined();
    for (const name of readdirSync(folder)) {
      expect(readFileSync(path.join(folder, name)).includes(PASSWORD)).toBe(false);
    }
  });

  test("what a stolen file gives to guess at is as costly as it was chosen to be", async () => {
    const folder = await temporaryFolder();
    const { accounts } = await opened(folder);
    await accounts.add("ada", PASSWORD);
    const database = openSqlite(accountsPath(folder));
    onTestFinished(() => void database.close());
    expect(database.prepare("SELECT password FROM account").pluck().get()).toMatch(/^scrypt\$65536\$8\$2\$/);
  });

  test("one typed in another Unicode form is the same", async () => {
    const { accounts } = accountsInMemory(clock);
    await accounts.add("ada", "Schlüssel und Schloß");
    expect(await accounts.checkPassword("ada", "Schlüssel und Schloß".normalize("NFD"))).toBeDefined();
  });

  test.each([
    ...["", " ", "a b", "-a", "a/b", "a\n", "x".repeat(65)],
    ...["7d1c0a52-6f0b-4a35-9a68-0a4a51d0f3f1", "7D1C0A52-6F0B-4A35-9A68-0A4A51D0F3F1"],
  ])("no account is called %j", async (name) => {
    await expect(accountsInMemory(clock).accounts.add(name, PASSWORD)).rejects.toThrow(AccountError);
  });

  test("a name is given once; a short password and one without end are refused", async () => {
    const { accounts } = accountsInMemory(clock);
    await accounts.add("ada", PASSWORD);
    await expect(accounts.add("ada", PASSWORD)).rejects.toThrow("there is an account ada already");
    await expect(accounts.add("bob", "1234567")).rejects.toThrow("expected at least 8 characters, got 7");
    await expect(accounts.add("bob", "x".repeat(2000))).rejects.toThrow("expected at most 1024 bytes, got 2000");
    expect(accounts.list().map(({ name }) => name)).toEqual(["ada"]);
  });

  test("what one process changes holds for the next call of another", async () => {
    const folder = await temporaryFolder();
    const gateway = await opened(folder);
    const command = await opened(folder);
    const ada = await command.accounts.add("ada", PASSWORD);
    command.accounts.setRole(ada.id, "w1", "viewer");
    expect(gateway.accounts.role(ada.id, "w1")).toBe("viewer");
    command.accounts.setRole(ada.id, "w1", "owner");
    expect(gateway.accounts.role(ada.id, "w1")).toBe("owner");
    expect(gateway.accounts.memberships({ workspace: "w1" })).toMatchObject([{ account: ada, role: "owner" }]);
    expect(command.accounts.removeRole(ada.id, "w1")).toBe(true);
    expect(gateway.accounts.role(ada.id, "w1")).toBeUndefined();
    command.accounts.setRole(ada.id, "w1", "editor");
    expect(command.accounts.remove(ada.id)).toBe(true);
    expect(gateway.accounts.role(ada.id, "w1")).toBeUndefined();
    expect(gateway.accounts.find("ada")).toBeUndefined();
  });

  test("somebody of an outside provider is the same account each time, under a name that is free", async () => {
    const { accounts } = accountsInMemory(clock);
    await accounts.add("ada", PASSWORD);
    const identity = { issuer: "https://id.example.com", subject: "17" };
    const outside = accounts.ofOutside(identity, "ada");
    expect(outside.name).toBe("ada-2");
    expect(accounts.ofOutside(identity, "ada lovelace")).toEqual(outside);
    expect(accounts.ofOutside({ ...identity, subject: "18" }, " ?? ").name).toBe("user");
    expect(await accounts.checkPassword("ada-2", "")).toBeUndefined();
  });

  test("nobody has the id of another account for a name, and one who has it already is not found by it", async () => {
    const folder = await temporaryFolder();
    const { accounts } = await opened(folder);
    const ada = await accounts.add("ada", PASSWORD);
    const eve = accounts.ofOutside({ issuer: "https://id.example.com", subject: "666" }, ada.id);
    expect([eve.name, accounts.find(ada.id)]).toEqual(["user", ada]);
    // As a release before this one let it be.
    const database = openSqlite(accountsPath(folder));
    database.prepare("UPDATE account SET name = ? WHERE id = ?").run(ada.id, eve.id);
    database.close();
    expect([accounts.find(ada.id), accounts.find(eve.id)]).toEqual([ada, { ...eve, name: ada.id }]);
  });

  test("the files are the owner's alone", async () => {
    const folder = await temporaryFolder();
    const { accounts } = await opened(folder);
    await accounts.add("ada", PASSWORD);
    for (const name of readdirSync(folder)) expect(statSync(path.join(folder, name)).mode & 0o077).toBe(0);
  });

  test("each role includes those before it", () => {
    expect(includesRole("owner", "viewer")).toBe(true);
    expect(includesRole("editor", "editor")).toBe(true);
    expect(includesRole("viewer", "editor")).toBe(false);
  });
});

describe("what the OAuth server remembers", () => {
  test("a refresh token is found by itself alone, is used once, and goes with its login", async () => {
    const folder = await temporaryFolder();
    const { records } = await opened(folder);
    records.upsert("Grant", "login-1", { accountId: "ada", jti: "login-1" }, undefined);
    records.upsert("RefreshToken", "s3cret-refresh", { grantId: "login-1", jti: "s3cret-refresh" }, 60);
    expect(records.find("RefreshToken", "s3cret-refresh")).toEqual({
      payload: { grantId: "login-1" },
      consumedAt: undefined,
    });
    records.consume("RefreshToken", "s3cret-refresh");
    expect(records.find("RefreshToken", "s3cret-refresh")?.consumedAt).toBe(Math.floor(clock.wallClock() / 1000));
    for (const name of readdirSync(folder)) {
      expect(readFileSync(path.join(folder, name)).includes("s3cret-refresh")).toBe(false);
    }
    expect(records.isLogin("login-1")).toBe(true);
    records.endLogin("login-1");
    expect(records.isLogin("login-1")).toBe(false);
    expect(records.find("RefreshToken", "s3cret-refresh")).toBeUndefined();
  });

  test("a changed password, and a removed account, end the logins of that account alone", async () => {
    const { accounts, records } = accountsInMemory(clock);
    const ada = await accounts.add("ada", PASSWORD);
    const bob = await accounts.add("bob", PASSWORD);
    records.upsert("Grant", "a", { accountId: ada.id }, undefined);
    records.upsert("Grant", "b", { accountId: bob.id }, undefined);
    await accounts.setPassword(ada.id, "quite another one");
    expect([records.isLogin("a"), records.isLogin("b")]).toEqual([false, true]);
    accounts.remove(bob.id);
    expect(records.isLogin("b")).toBe(false);
  });

  test("what has expired is dropped", () => {
    const moving = createVirtualClock();
    const { records } = accountsInMemory(moving);
    records.upsert("DeviceCode", "code", { userCode: "ABCD" }, 600);
    expect(records.findByUserCode("DeviceCode", "ABCD")).toBeDefined();
    moving.jump(600_000);
    records.tidy();
    expect(records.findByUserCode("DeviceCode", "ABCD")).toBeUndefined();
  });
});

describe("access tokens", () => {
  const base64 = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");

  function world() {
    const store = accountsInMemory(clock);
    const [key] = store.keys.all();
    if (key === undefined) throw new Error("There is no key.");
    const now = Math.floor(clock.wallClock() / 1000);
    const payload = {
      iss: ISSUER,
      aud: ISSUER,
      sub: "ada",
      client_id: "wsfs",
      scope: "a.b.c",
      iat: now,
      exp: now + 60,
    };
    const good = { ...payload, jti: "1", login: "login-1" };
    const header = { alg: "ES256", kid: key.kid, typ: "at+jwt" };
    const issue = (head: object = header, body: object = good) => {
      const text = `${base64(head)}.${base64(body)}`;
      const privateKey = createPrivateKey({ key: { ...key }, format: "jwk" });
      return `${text}.${sign("sha256", Buffer.from(text), { key: privateKey, dsaEncoding: "ieee-p1363" }).toString("base64url")}`;
    };
    return { store, key, header, good, issue, read: (token: string) => readAccessToken(store.keys, ISSUER, token) };
  }

  test("one of ours is read", () => {
    const { issue, read } = world();
    const token = read(issue());
    expect(token).toMatchObject({ account: "ada", scopes: ["a.b.c"], login: "login-1", workspace: undefined });
  });

  test("no other algorithm than the key's: none, and HMAC with the public key as its secret", () => {
    const { key, header, good, issue, read } = world();
    expect(read(issue({ ...header, alg: "none" }))).toBeUndefined();
    expect(read(`${base64({ ...header, alg: "none" })}.${base64(good)}.`)).toBeUndefined();
    const publicKey = createPublicKey({ key: { ...key }, format: "jwk" });
    const text = `${base64({ ...header, alg: "HS256" })}.${base64(good)}`;
    for (const secret of [
      publicKey.export({ type: "spki", format: "pem" }).toString(),
      JSON.stringify(publicKey.export({ format: "jwk" })),
    ]) {
      expect(read(`${text}.${createHmac("sha256", secret).update(text).digest("base64url")}`)).toBeUndefined();
    }
  });

  test("of another issuer, for another audience, of another type, by an unknown key: none of ours", () => {
    const { store, header, good, issue, read } = world();
    expect(read(issue(header, { ...good, iss: "http://evil.example" }))).toBeUndefined();
    expect(read(issue(header, { ...good, aud: "http://evil.example" }))).toBeUndefined();
    expect(read(issue({ ...header, typ: "JWT" }))).toBeUndefined();
    expect(read(issue({ ...header, crit: ["exp"] }))).toBeUndefined();
    expect(read(issue({ ...header, kid: "other" }))).toBeUndefined();
    expect(world().read(issue())).toBeUndefined();
    expect(read(`${issue()}.`)).toBeUndefined();
    expect(read("a.b.c")).toBeUndefined();
    store.keys.replaceAll();
    expect(read(issue())).toBeUndefined();
  });

  test("its signature has one spelling", () => {
    const { issue, read } = world();
    const token = issue();
    const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const last = alphabet.indexOf(token.at(-1) ?? "");
    // 64 bytes are 86 letters, whose last one has four bits to spare.
    const other = `${token.slice(0, -1)}${alphabet[last ^ 1]}`;
    expect(Buffer.from(other.split(".")[2] ?? "", "base64url")).toEqual(
      Buffer.from(token.split(".")[2] ?? "", "base64url"),
    );
    expect(read(token)).toBeDefined();
    expect(read(other)).toBeUndefined();
    expect(read(`${token}=`)).toBeUndefined();
  });

  test("keys are replaced after a month, and known as long as a token may live that they signed", () => {
    const moving = createVirtualClock();
    const { keys } = accountsInMemory(moving);
    const [first] = keys.all();
    keys.rotate(3600_000);
    expect(keys.all()).toHaveLength(1);
    moving.jump(30 * 86_400_000);
    keys.rotate(3600_000);
    const [second, old] = keys.all();
    expect(old?.kid).toBe(first?.kid);
    expect(second?.kid).not.toBe(first?.kid);
    moving.jump(3600_001);
    keys.rotate(3600_000);
    expect(keys.all().map(({ kid }) => kid)).toEqual([second?.kid]);
    expect(keys.publicKey(first?.kid ?? "", "ES256")).toBeUndefined();
  });
});
