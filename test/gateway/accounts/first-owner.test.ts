/** The account that `wsfs start` makes: once, whatever dies in between, and its file never holds another password than its own. */
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { type AccountStore, newPasswordPath, openAccounts, passwordPath } from "../../../src/gateway/accounts/index.ts";
import { ensureFirstOwner } from "../../../src/gateway/first-owner.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { createVirtualClock } from "../../support/virtual-clock.ts";

let folder: string;
let store: AccountStore;
beforeEach(async () => {
  folder = await temporaryFolder();
  store = openAccounts(folder, createVirtualClock());
  onTestFinished(() => store.close());
});

const ensure = (name = "ada") => ensureFirstOwner(store, folder, name, ["w1", "w2"]);
const names = () => store.accounts.list().map(({ name }) => name);
const files = () => [passwordPath(folder), newPasswordPath(folder)].map((file) => existsSync(file));
const password = () => readFileSync(passwordPath(folder), "utf8").trim();
/** The password in the file is that of the account. */
const isTrue = async (name = "ada") => (await store.accounts.checkPassword(name, password())) !== undefined;

test("it owns all workspaces, and its password lies in an owner-only file", async () => {
  await ensure();
  expect(store.accounts.memberships({})).toMatchObject([
    { account: { name: "ada" }, workspace: "w1", role: "owner" },
    { account: { name: "ada" }, workspace: "w2", role: "owner" },
  ]);
  expect([await isTrue(), files()]).toEqual([true, [true, false]]);
  expect(statSync(passwordPath(folder)).mode & 0o777).toBe(0o600);
  expect(store.firstPassword()).toEqual({ account: "ada", file: passwordPath(folder) });
});

test.each([
  ["ada", "ada"],
  ["_apt", "apt"],
  ["DOMAIN\\ada lovelace", "DOMAIN-ada-lovelace"],
  ["", "user"],
])("a user %j gets an account %j", async (user, name) => {
  await ensure(user);
  expect(names()).toEqual([name]);
});

describe("none is made", () => {
  test("a second time", async () => {
    await ensure();
    const before = password();
    await ensure();
    expect([names(), password()]).toEqual([["ada"], before]);
  });

  test("where it was removed", async () => {
    await ensure();
    store.accounts.remove(store.accounts.firstOwner()?.id ?? "");
    await ensure();
    expect([names(), files(), store.firstPassword()]).toEqual([[], [false, false], undefined]);
  });

  test("where there are others", async () => {
    await store.accounts.add("bob", "correct horse");
    await ensure();
    expect([names(), files(), store.accounts.firstOwner()]).toEqual([["bob"], [false, false], undefined]);
  });

  test("where another is made at the same moment, whose password is then in no file of ours", async () => {
    const ours = ensure();
    store.accounts.ofOutside({ issuer: "https://id.example.com", subject: "17" }, "bob");
    await ours;
    expect(names()).toEqual(["bob"]);
    expect(files()).toEqual([false, false]);
  });
});

describe("a process that dies", () => {
  test("before the account is there: the next one makes it, with the password that its file then has", async () => {
    writeFileSync(newPasswordPath(folder), "of nobody\n");
    await ensure();
    expect([await isTrue(), files()]).toEqual([true, [true, false]]);
  });

  test("once the account is there: the next one gives the file its name", async () => {
    writeFileSync(newPasswordPath(folder), "correct horse\n");
    await store.accounts.addFirstOwner("ada", "correct horse", ["w1"]);
    expect(store.firstPassword()).toBeUndefined();
    await ensure();
    expect([await isTrue(), files()]).toEqual([true, [true, false]]);
  });

  test("once the account is there, and its password is changed: no file claims the old one", async () => {
    writeFileSync(newPasswordPath(folder), "correct horse\n");
    const ada = await store.accounts.addFirstOwner("ada", "correct horse", ["w1"]);
    await store.accounts.setPassword(ada?.id ?? "", "another password");
    await ensure();
    expect(files()).toEqual([false, false]);
  });
});

describe("the file", () => {
  test("goes with the password, and stays where the new one is refused", async () => {
    await ensure();
    const id = store.accounts.firstOwner()?.id ?? "";
    await expect(store.accounts.setPassword(id, "short")).rejects.toThrow("at least 8 characters");
    expect([await isTrue(), files()]).toEqual([true, [true, false]]);
    await store.accounts.setPassword(id, "another password");
    expect([files(), store.firstPassword()]).toEqual([[false, false], undefined]);
    await ensure();
    expect([files(), store.accounts.firstOwner()?.name]).toEqual([[false, false], "ada"]);
  });

  test("is no concern of another account's password", async () => {
    await ensure();
    const bob = await store.accounts.add("bob", "correct horse");
    await store.accounts.setPassword(bob.id, "another password");
    store.accounts.remove(bob.id);
    expect(await isTrue()).toBe(true);
  });
});
