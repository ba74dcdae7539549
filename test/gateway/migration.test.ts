/**
 * Stores of older programs are taken over: what was answered then is answered again, and goes on.
 * `old-stores/` has a store as an older program left it, as SQL, and what that program was asked
 * and answered last: `kept` with keys, `now` as the state at its end.
 */
import { createHmac } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { openAccounts } from "../../src/gateway/accounts/index.ts";
import { startGateway } from "../../src/gateway/start.ts";
import { openSqlite } from "../../src/lib/sqlite/index.ts";
import { systemClock } from "../../src/lib/system-clock.ts";
import { createTestCore, part, type TestCore, uploadBody } from "../support/gateway-core.ts";
import { createMemoryBlobs } from "../support/memory-blobs.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { createVirtualClock } from "../support/virtual-clock.ts";

const upload = z.strictObject({ metadata: z.looseObject({}), content: z.tuple([z.string(), z.number()]) });
const past = z.object({
  kept: z.array(
    z.object({
      method: z.string(),
      path: z.string(),
      body: z.union([upload, z.looseObject({})]).optional(),
      headers: z.record(z.string(), z.string()).default({}),
      status: z.number(),
      answer: z.unknown(),
    }),
  ),
  now: z.array(z.object({ path: z.string(), answer: z.unknown() })),
  content: z.object({ small: z.string(), large: z.string() }),
});
type Kept = z.infer<typeof past>["kept"][number];

const read = (name: string) => readFileSync(new URL(`old-stores/${name}`, import.meta.url), "utf8");

async function openOld(): Promise<TestCore> {
  const database = openSqlite(":memory:");
  database.exec(read("schema-2.sql"));
  const blobs = createMemoryBlobs();
  const names = database.prepare<[], string>("SELECT blob FROM content WHERE blob IS NOT NULL").pluck().all();
  for (const name of names) await blobs.write(name, part("file", "b".repeat(40_000)).data);
  // A clock before all that happened: no key has lived long enough.
  return createTestCore({}, { clock: createVirtualClock(), blobs, database });
}

const locate = (url: string) => {
  const { pathname, searchParams } = new URL(url, "http://gateway");
  return [pathname, Object.fromEntries(searchParams)] as const;
};

function repeat(core: TestCore, { method, path: url, body, headers }: Kept) {
  const [path, query] = locate(url);
  const sent = upload.safeParse(body);
  if (!sent.success) return core.call(method, path, { query, headers, ...(body === undefined ? {} : { json: body }) });
  const [character, count] = sent.data.content;
  const metadata = part("metadata", JSON.stringify(sent.data.metadata));
  return core.call(method, path, {
    query,
    headers,
    body: uploadBody(metadata, part("file", character.repeat(count))),
  });
}

const told = past.parse(JSON.parse(read("schema-2.json")));

test("a store of schema 2 shows what it showed, and its contents", async () => {
  const core = await openOld();
  for (const { path: url, answer } of told.now) {
    const [path, query] = locate(url);
    const { json } = await core.call("GET", path, { query });
    // Versions did not say their attributes.
    const items = path.endsWith("/versions") ? json.items.map(({ attributes: _, ...version }) => version) : json.items;
    const shown = JSON.stringify({ ...json, items });
    // Who it was, was not written down then.
    expect([url, JSON.parse(shown.replaceAll(',"by":null', ""))]).toEqual([url, answer]);
  }
  const bytes = async (id: string) => (await core.call("GET", `/v1/nodes/${id}/content`)).bytes.toString();
  expect(await bytes(told.content.small)).toBe("c".repeat(50));
  expect(await bytes(told.content.large)).toBe("b".repeat(40_000));
});

test("keys used with an older program get their first answers, of all kinds, and are forgotten in time", async () => {
  const core = await openOld();
  expect(told.kept.length).toBeGreaterThan(5);
  const changes = () => core.database.prepare("SELECT count(*) FROM change").pluck().get();
  const before = changes();
  for (const kept of told.kept) {
    const { status, json } = await repeat(core, kept);
    expect([kept.path, status, json]).toEqual([kept.path, kept.status, kept.answer]);
  }
  expect(changes()).toBe(before);
  core.clock.jump(366 * 86_400_000);
  await core.gateway.forget();
  expect(core.database.prepare("SELECT count(*) FROM idempotency").pluck().get()).toBe(0);
});

test("an older store is written on, and what is new in it outlives a restart", async () => {
  let core = await openOld();
  const metadata = { idempotencyKey: "new" };
  const first = await core.upload("/v1/files/renamed/new.txt", "new", { metadata });
  expect(first.status).toBe(201);
  core = core.restart();
  expect((await core.upload("/v1/files/renamed/new.txt", "new", { metadata })).json).toEqual(first.json);
  expect(await core.names("/renamed")).toEqual(["large.bin", "new.txt", "small.txt"]);
});

/** As programs signed them that knew no accounts. */
function oldToken(key: Buffer, scope: string): string {
  const iat = Math.floor(Date.now() / 1000);
  const signed = [
    { alg: "HS256", typ: "JWT" },
    { scope, iat, exp: iat + 3600, jti: "1" },
  ]
    .map((part) => Buffer.from(JSON.stringify(part)).toString("base64url"))
    .join(".");
  return `${signed}.${createHmac("sha256", key).update(signed).digest("base64url")}`;
}

test("a data folder of before there were accounts: its tokens count as an owner's, and people get roles in it", async () => {
  const dataDir = await temporaryFolder();
  const key = Buffer.alloc(32, 9);
  writeFileSync(join(dataDir, "signing-key"), key, { mode: 0o600 });
  const database = openSqlite(join(dataDir, "gateway.db"));
  database.exec(read("schema-2.sql"));
  database.close();
  const gateway = await startGateway({ dataDir });
  onTestFinished(() => gateway.close());
  const scope = "account.workspace.read account.grant.read node.node.create node.file.read node.node.read-all";
  const headers = { authorization: `Bearer ${oldToken(key, scope)}`, "content-type": "application/json" };
  const call = async (path: string, body?: object) => {
    const init = body === undefined ? { headers } : { method: "POST", headers, body: JSON.stringify(body) };
    const answer = await fetch(gateway.baseUrl + path, init);
    return { status: answer.status, json: z.looseObject({}).parse(await answer.json()) };
  };
  expect((await call("/v1/account")).json).toMatchObject({ account: null, workspaces: [{ role: "owner" }] });
  const workspaces = z.object({ items: z.array(z.object({ id: z.string(), rootId: z.string(), role: z.string() })) });
  const [workspace] = workspaces.parse((await call("/v1/workspaces")).json).items;
  if (workspace === undefined) throw new Error("its workspace is not there");
  expect(workspace.role).toBe("owner");
  const made = await call("/v1/nodes", { parentId: workspace.rootId, name: "made since", kind: "folder" });
  expect(made.status).toBe(201);

  const store = openAccounts(dataDir, systemClock);
  onTestFinished(() => store.close());
  const ada = store.accounts.ofOutside({ issuer: "https://id.example.com", subject: "ada" }, "ada");
  store.accounts.setRole(ada.id, workspace.id, "viewer");
  const { json } = await call(`/v1/grants?workspace=${workspace.id}`);
  expect(json).toMatchObject({ items: [{ account: { name: "ada" }, role: "viewer" }] });
});
