/** What goes up: kinds of content, what can be sent twice, and that what is stored is what was sent. */
import { appendFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import type { Credentials } from "../../../src/client/credentials.ts";
import type { HttpRequest } from "../../../src/contract/http.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { exampleWritten } from "../support/examples.ts";
import { realGateway } from "../support/real-gateway.ts";
import { broken, chunksOf, json, type Step, scripted } from "../support/scripted-transport.ts";
import { collect, failureOf } from "../support/server.ts";

const written = json(201, exampleWritten({ contentHash: null }));

/** The bytes of each upload as a gateway would read them, before its step. */
function reading(bodies: string[], steps: readonly Step[]): Step[] {
  return steps.map((step) => async (request: HttpRequest) => {
    if (request.body?.kind === "upload") bodies.push(String(await collect(request.body.content.read())));
    return step(request);
  });
}

test.each<[string, () => Parameters<ReturnType<typeof scripted>["gateway"]["files"]["upload"]>[1]]>([
  ["text", () => "grüße"],
  ["bytes", () => Buffer.from("grüße")],
  ["a blob", () => new Blob(["grüße"])],
  ["a function", () => () => chunksOf("gr", "üße")],
])("%s is sent again whole", async (_, content) => {
  const bodies: string[] = [];
  const { gateway, run } = scripted(reading(bodies, [broken(), json(503, {}), written]));
  await run(gateway.files.upload("/a", content()));
  expect(bodies).toEqual(["grüße", "grüße", "grüße"]);
});

test("a file is sent by its path or URL, again from its start, its size said before", async () => {
  const path = join(await temporaryFolder(), "a");
  await writeFile(path, "x".repeat(2_500_000));
  const bodies: string[] = [];
  const { gateway, run, requests } = scripted(reading(bodies, [broken(), written, written]));
  await run(gateway.files.upload("/a", { path }));
  await run(gateway.files.upload("/a", { path: pathToFileURL(path) }));
  expect(bodies.map(({ length }) => length)).toEqual([2_500_000, 2_500_000, 2_500_000]);
  const [first] = requests;
  expect(first?.body?.kind === "upload" && first.body.content.size).toBe(2_500_000);
});

test("content that can be read once is sent again only while nothing of it was read", async () => {
  const bodies: string[] = [];
  const [readThenBroken, readWritten] = reading(bodies, [broken(), written]);
  if (readThenBroken === undefined || readWritten === undefined) throw new Error("no steps");
  const unread = scripted([broken("offline", true), json(429, {}), readWritten]);
  await unread.run(unread.gateway.files.upload("/a", chunksOf("once")));
  expect(bodies).toEqual(["once"]);
  const read = scripted([readThenBroken, readWritten]);
  expect(await read.run(failureOf(read.gateway.files.upload("/a", chunksOf("once"))))).toMatchObject({
    code: "offline",
  });
  expect(read.requests).toHaveLength(1);
});

test("content that was read once is not sent again with another token: the refusal is told", async () => {
  const tokens = ["old", "new"];
  const credentials: Credentials = { token: async () => "old", renew: async () => tokens.at(-1) };
  const refusal = json(401, { title: "expired" });
  const bodies: string[] = [];
  const steps = reading(bodies, [refusal, written]);
  const once = scripted(steps, { credentials });
  expect(await once.run(failureOf(once.gateway.files.upload("/a", chunksOf("once"))))).toMatchObject({ status: 401 });
  expect(once.requests).toHaveLength(1);
  const again = scripted(steps, { credentials });
  await again.run(again.gateway.files.upload("/a", "again"));
  expect(bodies).toEqual(["once", "again", "again"]);
});

test("content stored with another hash than what was sent is an error", async () => {
  const { gateway, run } = scripted(reading([], [json(201, exampleWritten({ contentHash: "0".repeat(64) }))]));
  const error = await run(failureOf(gateway.files.upload("/a", "hello")));
  expect(error).toMatchObject({ code: "malformed", message: expect.stringContaining("the gateway stored content") });
});

test("what is no file is refused before anything is sent", async () => {
  const folder = await temporaryFolder();
  await mkdir(join(folder, "d"));
  const { gateway, run, requests } = scripted([written]);
  for (const name of ["d", "missing"]) {
    const error = await run(failureOf(gateway.files.upload("/a", { path: join(folder, name) })));
    expect(error).toMatchObject({ code: "invalid", field: "content", isAmbiguous: false });
    expect(error.message).toContain(name === "d" ? "is not a file" : "ENOENT");
  }
  expect(requests).toEqual([]);
});

test("a file that grows or a stream that fails while it is sent leaves nothing at the gateway", async () => {
  const { gateway } = await realGateway();
  const path = join(await temporaryFolder(), "log");
  await writeFile(path, "x".repeat(2_000_000));
  let isGrown = false;
  const onProgress = () => {
    if (!isGrown) appendFileSync(path, "y");
    isGrown = true;
  };
  const grown = await failureOf(gateway.files.upload("/log", { path }, { onProgress }));
  expect(grown).toMatchObject({ code: "aborted", message: expect.stringContaining("expected 2000000") });
  const failing = async function* () {
    yield "some";
    throw new Error("EIO: the disk");
  };
  const failed = await failureOf(gateway.files.upload("/failed", failing()));
  expect(failed).toMatchObject({ code: "aborted", message: expect.stringContaining("EIO: the disk") });
  expect(await gateway.nodes.list().all()).toEqual([]);
});

test("a stream that yields something else is refused in words", async () => {
  const { gateway } = await realGateway();
  const wrong = async function* (): AsyncGenerator<never> {
    yield 5 as never;
  };
  const error = await failureOf(gateway.files.upload("/a", wrong()));
  expect(error).toMatchObject({ code: "aborted", message: expect.stringContaining("yields number, expected bytes") });
});

test("a repeated write with one key is done once, at a real gateway", async () => {
  // Its faults are drawn without a seed: so many tries that nobody will see them all fail.
  const { gateway, server } = await realGateway({ retries: { tries: 200, firstDelayMs: 1, maxDelayMs: 20 } });
  server.setOptions({ failRate: 0.4 });
  const uploads = Array.from({ length: 30 }, (_, index) => gateway.files.upload(`/${index}`, `content ${index}`));
  const nodes = await Promise.all(uploads);
  const moved = await Promise.all(nodes.map(({ id, name }) => gateway.nodes.update(id, { name: `moved ${name}` })));
  server.setOptions({ failRate: 0 });
  expect(moved.map(({ revision }) => revision)).toEqual(new Array(30).fill(2));
  for (const { id } of nodes) expect(await gateway.versions.list(id).all()).toHaveLength(1);
  expect(await gateway.nodes.list().all()).toHaveLength(30);
});
