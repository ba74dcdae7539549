/** The token file of `wsfs start`: whatever happens to clock, disk, accounts and tokens, it soon holds a good token again. */
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { accountStatus } from "../../src/contract/resources.ts";
import { startClaims, tokenFileKeeper, tokenPath, writeTokenFile } from "../../src/gateway/token-file.ts";
import { type Logger, SILENT } from "../../src/lib/log.ts";
import { DAY_MS, HOUR_MS } from "../../src/lib/time.ts";
import { createTestCore, type TestCore } from "../support/gateway-core.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

let folder: string;
let core: TestCore;
let errors: unknown[];
let look: () => void;
beforeEach(async () => {
  folder = await temporaryFolder();
  core = createTestCore();
  await core.accounts.accounts.addFirstOwner("ada", null, [core.workspace.id]);
  errors = [];
  look = keeper(folder);
});

function keeper(dataDir: string): () => void {
  const log: Logger = { ...SILENT, error: (details: object) => void errors.push("err" in details && details.err) };
  const { issueToken: issue, readOwnToken: read } = core.gateway;
  return tokenFileKeeper({ dataDir, accounts: core.accounts.accounts, log, issue, read });
}

const write = (isRenewed = true, dataDir = folder) =>
  writeTokenFile(
    tokenPath(dataDir),
    core.gateway.issueToken(startClaims(core.accounts.accounts, core.workspace.id, isRenewed)),
  );
const held = (dataDir = folder) => readFileSync(tokenPath(dataDir), "utf8").trim();
const ada = () => core.accounts.accounts.firstOwner()?.id ?? "";

/** What a program is told that uses the file's token. */
async function asked(token = held()): Promise<{ status: number; account: unknown; hours: number }> {
  const { status, bytes } = await core.call("GET", "/v1/account", { token });
  if (status !== 200) return { status, account: null, hours: 0 };
  const { account, expiresAt } = accountStatus.parse(JSON.parse(bytes.toString()));
  const until = Date.parse(expiresAt ?? "");
  return { status, account: account?.name ?? null, hours: (until - core.clock.wallClock()) / HOUR_MS };
}

test("a token of hours, of the account, which the journal names", async () => {
  write();
  expect(await asked()).toEqual({ status: 200, account: "ada", hours: 8 });
  expect(statSync(tokenPath(folder)).mode & 0o777).toBe(0o600);
  await core.upload("/v1/files/f", "x", { token: held() });
  const { json } = await core.call("GET", "/v1/journal", { query: { orderBy: "-position", pageSize: "1" } });
  expect(json.items).toMatchObject([{ by: { account: "ada" } }]);
});

test("another one is written well before its end, and not before that is near", async () => {
  write();
  const first = held();
  core.clock.jump(3.9 * HOUR_MS);
  look();
  expect(held()).toBe(first);
  core.clock.jump(0.2 * HOUR_MS);
  look();
  expect(held()).not.toBe(first);
  // Who took the one before a moment ago goes on with it.
  expect((await asked(first)).hours).toBeCloseTo(3.9);
  expect((await asked()).hours).toBeCloseTo(8);
});

test.each([
  ["the machine slept for days", () => core.clock.sleep(3 * DAY_MS)],
  ["the clock was set ahead", () => core.clock.jump(90 * DAY_MS)],
  ["the clock was set back", () => core.clock.jump(-90 * DAY_MS)],
  ["all tokens were revoked", () => core.accounts.revokeAll()],
])("when %s, a good one for hours is there at the next look, and is left alone then", async (_, happens) => {
  write();
  happens();
  look();
  expect(await asked()).toEqual({ status: 200, account: "ada", hours: 8 });
  const token = held();
  look();
  expect([held() === token, readdirSync(folder)]).toEqual([true, ["token"]]);
});

test("all were revoked, and the clock was set back to before that: it is good, for hours", async () => {
  write();
  core.accounts.revokeAll();
  core.clock.jump(-90 * DAY_MS);
  look();
  expect(await asked()).toEqual({ status: 200, account: "ada", hours: 8 });
});

test.each([
  ["is removed", () => core.accounts.accounts.remove(ada())],
  ["is made a viewer", () => core.accounts.accounts.setRole(ada(), core.workspace.id, "viewer")],
  ["loses its role", () => core.accounts.accounts.removeRole(ada(), core.workspace.id)],
])("when the account %s, whose folder it is still writes: by a token of no account", async (_, happens) => {
  write();
  happens();
  look();
  expect(await asked()).toEqual({ status: 200, account: null, hours: 8 });
  expect((await core.upload("/v1/files/f", "x", { token: held() })).status).toBe(201);
});

test("one for a gateway of a former release lasts a year, and gives way to one of hours under this one", async () => {
  write(false);
  const lasting = held();
  expect((await asked()).hours).toBe(365 * 24);
  look();
  expect((await asked()).hours).toBe(8);
  expect((await asked(lasting)).status).toBe(200);
});

test.each([
  ["a token that somebody keeps there", () => core.token(["node.file.read"])],
  ["what is no token", () => "password"],
  ["nothing", () => ""],
])("%s is left as it is", (_, text) => {
  writeFileSync(tokenPath(folder), text());
  const before = held();
  core.clock.jump(DAY_MS);
  look();
  expect([held(), errors]).toEqual([before, []]);
  rmSync(tokenPath(folder));
  look();
  expect([readdirSync(folder), errors]).toEqual([[], []]);
});

describe("a folder that cannot be written", () => {
  test("is told of once, and tried again", async () => {
    write();
    core.accounts.revokeAll();
    const file = tokenPath(folder);
    const revoked = held();
    rmSync(file);
    execFileSync("mkdir", [file]);
    look();
    look();
    expect(errors).toMatchObject([{ code: "EISDIR" }]);
    rmSync(file, { recursive: true });
    writeFileSync(file, revoked);
    look();
    expect((await asked()).status).toBe(200);
  });

  test("for its disk is full: the file keeps its room, and holds the new token", async (context) => {
    try {
      execFileSync("mount", ["-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], { stdio: "pipe" });
    } catch {
      return context.skip("mounting a tmpfs needs root");
    }
    onTestFinished(() => void execFileSync("umount", ["-l", folder]));
    write();
    expect(() => writeFileSync(path.join(folder, "fill"), Buffer.alloc(1 << 20))).toThrow("ENOSPC");
    core.accounts.revokeAll();
    look();
    expect(await asked()).toEqual({ status: 200, account: "ada", hours: 8 });
    // A shorter one.
    core.accounts.accounts.remove(ada());
    look();
    expect(await asked()).toEqual({ status: 200, account: null, hours: 8 });
    expect([readdirSync(folder).sort(), errors]).toEqual([["fill", "token"], []]);
  });
});
