/** Every operation of the contract through `connect`, against a real gateway over HTTP. */
import { createHash, randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { connect, type Gateway } from "../../../src/client/connect.ts";
import { staticToken } from "../../../src/client/credentials.ts";
import { createHttpTransport } from "../../../src/client/http-transport.ts";
import type { LogLine } from "../../../src/contract/engines.ts";
import type { Transport } from "../../../src/contract/http.ts";
import { OPERATIONS } from "../../../src/contract/operations.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { addEngine } from "../support/add-engine.ts";
import { examplePage, exampleWritten } from "../support/examples.ts";
import { realGateway } from "../support/real-gateway.ts";
import { json, scripted } from "../support/scripted-transport.ts";
import { failureOf } from "../support/server.ts";

/** The operation a request is of, by the contract's table. */
function operationOf(method: string, path: string): string {
  const found = Object.entries(OPERATIONS).find(([, operation]) => {
    const pattern = operation.path.replace("{path}", ".*").replaceAll(/\{\w+\}/g, "[^/]+");
    return operation.method === method && new RegExp(`^${pattern}$`).test(path);
  });
  return found?.[0] ?? `${method} ${path}`;
}

test("a program does everything the gateway can, and each operation was asked for", async () => {
  const dataDir = await temporaryFolder();
  const { server } = await realGateway({}, { dataDir });
  addEngine(dataDir, "greet", 'read input; echo "hello $input"; echo warned >&2');
  addEngine(dataDir, "stay", "sleep 600");
  const token = await server.issueToken({});
  const seen = new Set<string>();
  const http = createHttpTransport({ baseUrl: server.baseUrl });
  const transport: Transport = {
    send(request) {
      seen.add(operationOf(request.method, request.path));
      return http.send(request);
    },
    close: () => http.close(),
  };
  // Bound to no workspace: calls by path and of the journal have to name it.
  const credentials = staticToken(token);
  const gateway = connect({ baseUrl: "http://unused.invalid", transport, credentials, workspace: "workspace" });
  const { workspaces, nodes, files, versions, journal } = gateway;

  const [workspace] = await workspaces.list().all();
  expect(workspace?.name).toBe("workspace");
  expect(await workspaces.find("workspace")).toEqual(workspace);
  expect(await workspaces.find(workspace?.id ?? "")).toEqual(workspace);
  expect(await workspaces.find("another")).toBeUndefined();
  const root = await nodes.byPath("/");
  expect(root).toMatchObject({ id: workspace?.rootId, path: "/" });

  const uploaded = await files.upload("/reports/2026/50% ä.txt", "first", {
    contentType: "text/plain",
    attributes: { mode: 0o600 },
  });
  expect(uploaded).toMatchObject({ path: "/reports/2026/50% ä.txt", size: 5, attributes: { mode: 0o600 } });
  expect(await nodes.byPath("reports/2026/50% ä.txt")).toMatchObject({ id: uploaded.id });
  expect(await failureOf(files.upload(uploaded.path, "x", { ifAbsent: true }))).toMatchObject({
    code: "changed",
    node: { id: uploaded.id },
  });
  const second = await files.write(uploaded.id, "second", { ifHead: uploaded.head ?? "" });
  const third = await files.upload(uploaded.path, "third", { ifHead: second.head ?? "" });
  expect(third.id).toBe(uploaded.id);
  expect(await failureOf(files.write(uploaded.id, "x", { ifHead: second.head ?? "" }))).toMatchObject({ status: 412 });
  await files.writeCopy(uploaded.id, { copyOf: uploaded.id, version: uploaded.head ?? "" });
  expect(await (await files.read(uploaded.id)).text()).toBe("first");
  expect(await (await files.read(uploaded.id, { version: second.head ?? "" })).text()).toBe("second");
  const made = await versions.list(uploaded.id).all();
  expect(made.map(({ number }) => number)).toEqual([1, 2, 3, 4]);
  const middle = await files.read(uploaded.id, { range: { start: 1, end: 3 } });
  expect([await middle.text(), middle.size, middle.mimeType]).toEqual(["ir", 5, expect.stringContaining("text/plain")]);

  const folder = await nodes.ensureFolder("/a/b/c");
  expect(folder).toMatchObject({ path: "/a/b/c", kind: "folder" });
  expect((await nodes.ensureFolder("/a/b/c")).id).toBe(folder.id);
  expect((await nodes.ensureFolder("/")).id).toBe(root.id);
  expect(await failureOf(nodes.ensureFolder(`${uploaded.path}/x`))).toMatchObject({ code: "conflict" });
  const taken = await failureOf(nodes.createFolder(root.id, "a"));
  expect(taken).toMatchObject({ code: "conflict", node: { path: "/a" } });
  const copy = await nodes.copy(folder.id, "copy", { copyOf: uploaded.id });
  const own = await files.create(folder.id, "own", "own");
  expect(await failureOf(files.create(folder.id, "own", "x"))).toMatchObject({ code: "changed", node: { id: own.id } });
  const swapped = await nodes.exchange(copy.id, own.id);
  expect(swapped.name).toBe("own");
  const moved = await nodes.update(copy.id, { parentId: root.id, name: "moved" }, { ifRevision: swapped.revision });
  expect(moved.path).toBe("/moved");
  expect(await failureOf(nodes.update(copy.id, { name: "x" }, { ifRevision: 1 }))).toMatchObject({ code: "changed" });
  await nodes.delete(copy.id, { ifRevision: moved.revision });
  expect(await failureOf(nodes.get(copy.id))).toMatchObject({ code: "notFound" });
  expect((await nodes.restore(copy.id)).id).toBe(copy.id);
  expect((await nodes.get(copy.id)).path).toBe("/moved");
  await nodes.delete(copy.id);
  expect(await nodes.list({ deleted: true }).all()).toMatchObject([{ id: copy.id, deletedBy: null }]);
  const back = await nodes.restore(copy.id, { parentId: folder.id, name: "else" });
  expect(back.path).toBe("/a/b/c/else");
  const [latest] = await journal.list({ nodeId: copy.id, orderBy: "-position", before: true, pageSize: 1 }).all();
  expect(latest).toMatchObject({
    kind: "restored",
    position: back.position,
    before: { name: "moved", isDeleted: true },
  });
  expect(await journal.list({ nodeId: copy.id, since: latest?.time, by: "ada", mount: "here" }).all()).toEqual([]);
  await nodes.update(copy.id, { parentId: root.id, name: "moved" });
  const done: unknown[] = [];
  for (const plan of [true, false]) {
    for await (const { action, path } of nodes.restoreTree(folder.id, latest?.time ?? "", { plan }))
      done.push([action, path]);
  }
  expect(done).toEqual([
    ["move", "/a/b/c/else"],
    ["move", "/a/b/c/else"],
  ]);
  await nodes.update(copy.id, { parentId: root.id, name: "moved" });
  const names = (await nodes.list().all()).map(({ name }) => name);
  expect(names).toEqual(["a", "moved", "reports"]);
  expect(await nodes.list({ path: "/a", name: "b" }).all()).toHaveLength(1);
  expect(await nodes.list({ parentId: folder.id }).all()).toMatchObject([{ name: "copy", id: own.id }]);
  const ordered = await nodes.list({ orderBy: "-name", pageSize: 2 }).all();
  expect(ordered.map(({ name }) => name)).toEqual(names.toReversed());
  const then = await nodes.list({ at: new Date(uploaded.createdAt) }).all();
  expect(then.map(({ name }) => name)).toContain("reports");
  expect(await nodes.list({ at: new Date(0) }).all()).toEqual([]);

  const below = await nodes.list({ path: "/a", recursive: true, pageSize: 2 }).all();
  expect(below.map(({ path }) => path).sort()).toEqual(["/a/b", "/a/b/c", "/a/b/c/copy"]);

  const branched = await files.write(own.id, "on a branch", { branch: "draft" });
  expect(branched.id).toBe(own.id);
  expect(await (await files.read(own.id, { branch: "draft" })).text()).toBe("on a branch");
  expect(await (await files.read(own.id)).text()).toBe("own");
  expect(await nodes.get(own.id, { branch: "draft" })).toMatchObject({ size: 11 });
  expect((await nodes.byPath("/a/b/c/copy", { branch: "draft" })).size).toBe(11);
  expect(await nodes.list({ parentId: folder.id, branch: "draft" }).all()).toMatchObject([{ size: 11 }]);
  const drafts = await versions.list(own.id, { branch: "draft" }).all();
  expect(drafts.at(-1)).toMatchObject({ branch: "draft", size: 11 });

  const entry = await journal.append(uploaded.id, "reviewed");
  const entries = await journal.list({ pageSize: 3 }).all();
  expect(entries.at(-1)).toEqual(entry);
  expect(new Set(entries.map(({ position }) => position)).size).toBe(entries.length);
  for await (const followed of journal.follow({ after: entry.position - 1 })) {
    expect(followed).toEqual(entry);
    break;
  }

  expect(await gateway.account.get()).toMatchObject({ account: null, workspaces: [{ role: "owner" }] });
  expect(await gateway.account.grants().all()).toEqual([]);
  expect(await failureOf(gateway.account.grant("ada", "viewer"))).toMatchObject({ code: "notFound" });
  expect(await failureOf(gateway.account.revoke("ada"))).toMatchObject({ code: "notFound" });

  await runsEngines(gateway);
  await startsEnginesByTriggers(gateway);
  await makesKeys(gateway, http);

  expect([...seen].sort()).toEqual(Object.keys(OPERATIONS).sort());
  await gateway.close();
  expect(await failureOf(nodes.get(root.id))).toMatchObject({ code: "aborted", isAmbiguous: false });
});

/** Workspaces, engines, installations, executions and their logs. */
async function runsEngines(gateway: Gateway): Promise<void> {
  const { workspaces, engines, installations, executions, journal } = gateway;
  const made = await workspaces.create("second");
  expect(await workspaces.find("second")).toEqual(made);
  expect(await failureOf(workspaces.create("second"))).toMatchObject({ code: "conflict", status: 409 });

  expect((await engines.list({ orderBy: "-name", pageSize: 1 }).all()).map(({ name }) => name)).toEqual([
    "stay",
    "greet",
  ]);
  const greet = await engines.get("greet");
  expect(await engines.get(greet.id)).toEqual(greet);
  expect(await failureOf(engines.get("none"))).toMatchObject({ code: "notFound" });

  expect(await failureOf(executions.start("greet"))).toMatchObject({ code: "conflict" });
  const installed = await installations.create("greet", { path: "/tools/greet", idempotencyKey: "once" });
  expect(await installations.create("greet", { path: "/tools/greet", idempotencyKey: "once" })).toEqual(installed);
  expect(await failureOf(installations.create("greet"))).toMatchObject({ code: "conflict" });
  expect((await gateway.nodes.get(installed.folderId)).path).toBe("/tools/greet");
  const elsewhere = await installations.create("greet", { workspace: "second" });
  expect(elsewhere.workspace.name).toBe("second");
  expect(await installations.list().all()).toEqual([installed]);
  expect(await installations.list({ workspace: "second" }).all()).toEqual([elsewhere]);
  expect(await installations.get(installed.id)).toEqual(installed);

  const started = await executions.start("greet", { input: { a: 1 }, idempotencyKey: "run" });
  expect((await executions.start("greet", { input: { a: 1 }, idempotencyKey: "run" })).id).toBe(started.id);
  const lines: LogLine[] = [];
  for await (const line of executions.follow(started.id)) lines.push(line);
  expect(lines.map(({ stream, text }) => [stream, text]).sort()).toEqual([
    ["err", "warned"],
    ["out", 'hello {"a":1}'],
  ]);
  const ended = await executions.wait(started.id);
  expect(ended).toMatchObject({ state: "succeeded", exitCode: 0, input: { a: 1 }, cause: null });
  expect(await executions.log(started.id).all()).toEqual(lines);
  expect(await executions.log(started.id, { after: 1, pageSize: 1 }).all()).toEqual(lines.slice(1));
  const kinds = (await journal.list().all()).flatMap((one) => (one.by?.execution === started.id ? [one.kind] : []));
  expect(kinds).toEqual(["execution.queued", "execution.running", "execution.succeeded"]);

  await installations.create("stay");
  const staying = await executions.start("stay");
  await executions.cancel(staying.id);
  const cancelled = await executions.wait(staying.id);
  expect(cancelled).toMatchObject({ state: "cancelled", id: staying.id });
  expect(await executions.cancel(staying.id)).toEqual(cancelled);
  expect(await executions.list({ pageSize: 1 }).all()).toEqual([cancelled, ended]);
  expect(await executions.list({ engine: "greet", state: "succeeded" }).all()).toEqual([ended]);
  expect(await executions.list({ workspace: "second" }).all()).toEqual([]);

  await installations.remove(elsewhere.id);
  expect(await failureOf(installations.get(elsewhere.id))).toMatchObject({ code: "notFound" });
  expect(await failureOf(installations.remove(elsewhere.id))).toMatchObject({ code: "notFound" });
}

async function startsEnginesByTriggers({ triggers, executions, nodes, journal }: Gateway): Promise<void> {
  const on = { journal: { kinds: ["reviewed"], path: "/a" } };
  const made = await triggers.create({ name: "reviews", engine: "greet", on, input: "x" }, { idempotencyKey: "t" });
  const again = await triggers.create({ name: "reviews", engine: "greet", on, input: "x" }, { idempotencyKey: "t" });
  expect(again.id).toBe(made.id);
  expect(made).toMatchObject({ name: "reviews", on, input: "x", isEnabled: true, engine: { name: "greet" } });
  expect(await failureOf(triggers.create({ name: "reviews", engine: "greet", on }))).toMatchObject({
    code: "conflict",
  });
  expect(await triggers.list().all()).toEqual([made]);
  expect(await triggers.list({ workspace: "second" }).all()).toEqual([]);

  const folder = await nodes.byPath("/a");
  const entry = await journal.append(folder.id, "reviewed");
  const startedBy = async () => (await executions.list().all()).filter(({ cause }) => cause?.triggerId === made.id);
  await expect.poll(async () => (await startedBy()).length, { timeout: 30_000 }).toBe(1);
  const [started] = await startedBy();
  expect(await executions.wait(started?.id ?? "")).toMatchObject({
    state: "succeeded",
    input: "x",
    cause: { triggerId: made.id, entry: { position: entry.position } },
  });
  expect(await triggers.get(made.id)).toMatchObject({ lastExecutionId: started?.id });

  const schedule = { cron: "30 2 * * *", timeZone: "Europe/Berlin" };
  const updated = await triggers.update(made.id, { on: { schedule }, isEnabled: false });
  expect(updated).toMatchObject({ on: { schedule }, isEnabled: false, input: "x" });
  await triggers.remove(made.id);
  expect(await failureOf(triggers.get(made.id))).toMatchObject({ code: "notFound" });
}

async function makesKeys({ apiKeys }: Gateway, transport: Transport): Promise<void> {
  const expiresAt = new Date("2100-01-01T00:00:00.000Z");
  const made = await apiKeys.create("service", ["node.node.read-all", "account.workspace.read"], { expiresAt });
  expect(made).toMatchObject({ name: "service", expiresAt: expiresAt.toISOString(), lastUsedAt: null });
  const elsewhere = await apiKeys.create("elsewhere", ["node.file.read"], { workspace: "second" });
  expect((await apiKeys.list().all()).map(({ id }) => id)).toEqual([made.id]);
  const service = connect({ baseUrl: "http://unused.invalid", transport, credentials: staticToken(made.key) });
  expect((await service.workspaces.list().all()).map(({ name }) => name)).toEqual(["workspace"]);
  expect(await failureOf(service.files.upload("/x", "x"))).toMatchObject({ code: "forbidden", status: 403 });
  const { key: _, ...shown } = made;
  expect(await apiKeys.list().all()).toEqual([{ ...shown, lastUsedAt: expect.any(String) }]);
  await apiKeys.revoke(made.id);
  expect(await failureOf(service.nodes.list().all())).toMatchObject({ status: 401 });
  expect(await failureOf(apiKeys.revoke(made.id))).toMatchObject({ code: "notFound" });
  await apiKeys.revoke(elsewhere.id);
}

test("what a program hands over goes up and comes back, its size known or not", async () => {
  const { gateway } = await realGateway();
  const bytes = randomBytes(3_000_000);
  const contentHash = createHash("sha256").update(bytes).digest("hex");
  async function* pieces() {
    for (let start = 0; start < bytes.length; start += 700_001) yield bytes.subarray(start, start + 700_001);
  }
  const contents = {
    bytes,
    blob: new Blob([bytes]),
    pieces: pieces(),
    again: pieces,
    web: new Blob([bytes]).stream(),
  };
  for (const [name, content] of Object.entries(contents)) {
    const node = await gateway.files.upload(`/${name}`, content);
    expect(node).toMatchObject({ size: bytes.length, contentHash });
    expect((await (await gateway.files.read(node.id, { contentHash })).buffer()).equals(bytes)).toBe(true);
  }
  expect(await gateway.files.upload("/sized", pieces(), { size: bytes.length })).toMatchObject({ contentHash });
  expect((await gateway.files.upload("/text", "grüße")).size).toBe(7);
  expect((await gateway.files.upload("/empty", "")).size).toBe(0);
  const wrong = await failureOf(gateway.files.upload("/short", pieces(), { size: bytes.length + 1 }));
  expect(wrong).toMatchObject({ code: "aborted", message: expect.stringContaining(`expected ${bytes.length + 1}`) });
  const refused = await failureOf(gateway.files.upload("/hash", "x", { contentHash }));
  expect(refused).toMatchObject({ code: "invalid", field: "contentHash" });
  const names = await gateway.nodes.list().all();
  expect(names.map(({ name }) => name)).not.toContain("short");
});

test("a branch, a moment and a workspace are asked for where the contract has them", async () => {
  const node = json(200, exampleWritten({ contentHash: "0".repeat(64) }));
  const page = json(200, examplePage([]));
  const { gateway, run, requests } = scripted(
    [(request) => (/(nodes|versions|journal|workspaces)$/.test(request.path) ? page(request) : node(request))],
    { workspace: "w" },
  );
  const { nodes, files, versions, journal } = gateway;
  const at = "2026-01-02T03:04:05.678Z";
  await run(nodes.get("n1", { branch: "b" }));
  await run(nodes.byPath("/a", { branch: "b", at: new Date(at) }));
  await run(nodes.list({ branch: "b", at, recursive: true }).all());
  await run(nodes.list({ parentId: "n2", workspace: "ignored: an id says its own" }).page(3));
  await run(versions.list("n1", { branch: "b" }).all());
  await run(journal.list({ workspace: "other" }).all());
  await run(files.upload("/a", "x", { branch: "b" }));
  await run(files.write("n1", "x", { branch: "b" }));
  const asked = requests.map(({ method, path, query, body }) => {
    const metadata = body?.kind === "upload" ? body.metadata : {};
    return [`${method} ${path}`, query, metadata];
  });
  const metadata = expect.objectContaining({ branch: "b" });
  expect(asked).toEqual([
    ["GET /v1/nodes/n1", { branch: "b" }, {}],
    ["GET /v1/files/a", { workspace: "w", branch: "b", at }, {}],
    ["GET /v1/tree", { workspace: "w", branch: "b", at }, {}],
    // This gateway answers something else there.
    ["GET /v1/nodes", { workspace: "w", branch: "b", at, recursive: "true", after: "" }, {}],
    ["GET /v1/nodes", { parentId: "n2", pageNo: "3" }, {}],
    ["GET /v1/nodes/n1/versions", { branch: "b", after: "" }, {}],
    ["GET /v1/journal", { workspace: "other", after: "0" }, {}],
    ["POST /v1/files/a", { workspace: "w" }, metadata],
    ["PUT /v1/nodes/n1/content", {}, metadata],
  ]);
});
