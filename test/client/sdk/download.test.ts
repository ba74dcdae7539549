/** Downloads into files: whole or not there, going on after failures and crashes, two at once. */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { readdir, readFile, stat, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { connect, type Gateway } from "../../../src/client/connect.ts";
import { staticToken } from "../../../src/client/credentials.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { breakingContent } from "../support/breaking-content.ts";
import { exampleNode } from "../support/examples.ts";
import { realGateway } from "../support/real-gateway.ts";
import { scripted } from "../support/scripted-transport.ts";
import { answerJson, failureOf, serve } from "../support/server.ts";

const content = new Uint8Array(5000).map((_, index) => (index * 7 + (index >> 8)) & 0xff);
const contentHash = createHash("sha256").update(content).digest("hex");
const NO_TRIES = { retries: false } as const;

test("a file arrives whole, in the place of what was there, with nothing beside it", async () => {
  const folder = await temporaryFolder();
  const path = join(folder, "a");
  await writeFile(path, "old");
  const script = breakingContent(content, { breaks: [1500, 0, 700] });
  const { gateway, run } = scripted([script.step]);
  const progress: number[] = [];
  const onProgress = (written: number) => progress.push(written);
  const got = await run(gateway.files.download("n1", path, { onProgress }));
  expect(got).toEqual({ version: "v1", size: 5000, contentHash });
  expect((await readFile(path)).equals(content)).toBe(true);
  expect(await readdir(folder)).toEqual(["a"]);
  expect(script.starts).toEqual([0, 1500, 1500, 2200]);
  expect([progress[0], progress.at(-1)]).toEqual([0, 5000]);
});

test("an empty file arrives", async () => {
  const path = join(await temporaryFolder(), "a");
  const { gateway, run } = scripted([breakingContent(new Uint8Array(), { breaks: [] }).step]);
  expect(await run(gateway.files.download("n1", path))).toMatchObject({ size: 0 });
  expect((await stat(path)).size).toBe(0);
});

test("after a failure nothing has the name, and the next attempt asks for the rest", async () => {
  const folder = await temporaryFolder();
  const path = join(folder, "a");
  const script = breakingContent(content, { breaks: [1500, 700] });
  const { gateway, run } = scripted([script.step]);
  expect(await run(failureOf(gateway.files.download("n1", path, NO_TRIES)))).toMatchObject({ code: "offline" });
  expect(await readdir(folder)).toEqual([expect.stringMatching(/^\.wsfs-.*\.part$/)]);
  await run(failureOf(gateway.files.download("n1", path, NO_TRIES)));
  expect(await readdir(folder)).toHaveLength(1);
  await run(gateway.files.download("n1", path, NO_TRIES));
  expect(script.starts).toEqual([0, 1500, 2200]);
  expect((await readFile(path)).equals(content)).toBe(true);
  expect(await readdir(folder)).toEqual(["a"]);
});

test.each<[string, (part: string) => Promise<void>]>([
  ["has zeros where bytes were", (part) => writeFile(part, Buffer.alloc(1500))],
  ["is longer than the content", (part) => truncate(part, 6000)],
])("what an attempt left and a crash spoiled is not trusted: it %s", async (_, spoil) => {
  const folder = await temporaryFolder();
  const path = join(folder, "a");
  const script = breakingContent(content, { breaks: [1500] });
  const { gateway, run } = scripted([script.step]);
  await run(failureOf(gateway.files.download("n1", path, NO_TRIES)));
  const [part] = await readdir(folder);
  await spoil(join(folder, part ?? ""));
  expect(await run(gateway.files.download("n1", path))).toMatchObject({ contentHash });
  expect((await readFile(path)).equals(content)).toBe(true);
});

test("content with another hash is never under the name, and nothing is left of it", async () => {
  const folder = await temporaryFolder();
  const tamper = (bytes: Uint8Array) => bytes.map((byte) => byte ^ 1);
  const script = breakingContent(content, { breaks: [], tamper });
  const { gateway, run } = scripted([script.step]);
  const error = await run(failureOf(gateway.files.download("n1", join(folder, "a"))));
  expect(error).toMatchObject({ code: "malformed", message: expect.stringContaining(contentHash) });
  expect(await readdir(folder)).toEqual([]);
});

test("what is left of an older version is removed, not gone on with", async () => {
  const folder = await temporaryFolder();
  const path = join(folder, "a");
  const old = breakingContent(content, { breaks: [1500] });
  const first = scripted([old.step]);
  await first.run(failureOf(first.gateway.files.download("n1", path, NO_TRIES)));
  const fresh = breakingContent(content.subarray(0, 3000), { breaks: [], version: () => "v2" });
  const second = scripted([
    (request) => {
      if (request.path.endsWith("/content")) return fresh.step(request);
      const hash = createHash("sha256").update(content.subarray(0, 3000)).digest("hex");
      const node = exampleNode({ head: "v2", size: 3000, contentHash: hash });
      return { status: 200, headers: {}, body: new Blob([JSON.stringify(node)]).stream() };
    },
  ]);
  expect(await second.run(second.gateway.files.download("n1", path))).toMatchObject({ version: "v2" });
  expect(fresh.starts).toEqual([0]);
  expect(await readdir(folder)).toEqual(["a"]);
});

test("two downloads to one name at once are both whole", async () => {
  const folder = await temporaryFolder();
  const path = join(folder, "a");
  const script = breakingContent(content, { breaks: [700, 1500, 300, 900] });
  const { gateway, run } = scripted([script.step]);
  const both = [gateway.files.download("n1", path), gateway.files.download("n1", path)];
  expect(await run(Promise.all(both))).toMatchObject([{ contentHash }, { contentHash }]);
  expect((await readFile(path)).equals(content)).toBe(true);
  expect(await readdir(folder)).toEqual(["a"]);
});

test("an aborted download ends at once and can be gone on with", async () => {
  const folder = await temporaryFolder();
  const path = join(folder, "a");
  const served = await halfServer();
  const gateway = gatewayAt(served.baseUrl);
  const controller = new AbortController();
  const onProgress = (written: number) => {
    if (written === HALF) controller.abort();
  };
  const error = await failureOf(gateway.files.download("n1", path, { signal: controller.signal, onProgress }));
  expect(error).toMatchObject({ code: "aborted" });
  expect(await readdir(folder)).toEqual([expect.stringMatching(/part$/)]);
  served.end();
  await gateway.files.download("n1", path);
  expect(served.ranges).toEqual([undefined, "bytes=2000-4999"]);
  expect((await readFile(path)).equals(content)).toBe(true);
});

test("a version, a deleted file's too, and a folder's refusal, at a real gateway", async () => {
  const { gateway } = await realGateway();
  const folder = await temporaryFolder();
  const first = await gateway.files.upload("/d/a", content);
  await gateway.files.write(first.id, "second");
  await gateway.files.download(first.id, join(folder, "head"));
  expect(await readFile(join(folder, "head"), "utf8")).toBe("second");
  await gateway.nodes.delete(first.id);
  const version = first.head ?? "";
  expect(await gateway.files.download(first.id, join(folder, "v1"), { version })).toEqual({
    version,
    size: content.length,
    contentHash,
  });
  expect((await readFile(join(folder, "v1"))).equals(content)).toBe(true);
  expect(await failureOf(gateway.files.download(first.id, join(folder, "x")))).toMatchObject({ code: "notFound" });
  const refused = await failureOf(gateway.files.download(first.parentId ?? "", join(folder, "x")));
  expect(refused).toMatchObject({ code: "invalid", field: "nodeId" });
  expect((await readdir(folder)).sort()).toEqual(["head", "v1"]);
});

test("what a killed process left is gone on with by the next; what a living one writes is not touched", async () => {
  const folder = await temporaryFolder();
  const path = join(folder, "a");
  const { baseUrl, ranges, end } = await halfServer();
  const program = fileURLToPath(new URL("../support/download-process.ts", import.meta.url));
  const hook = fileURLToPath(new URL("../../../scripts/typescript.mjs", import.meta.url));
  const child = spawn(process.execPath, ["--import", hook, program, baseUrl, path], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(child, "exit");
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  // It prints one line when it has 2000 bytes.
  await once(child.stdout, "data");
  const [living] = await readdir(folder);
  end();
  const gateway = gatewayAt(baseUrl);
  await gateway.files.download("n1", path);
  expect(ranges).toEqual([undefined, undefined]);
  expect((await readdir(folder)).sort()).toEqual([living, "a"].sort());
  child.kill("SIGKILL");
  await ended;
  await gateway.files.download("n1", path);
  expect(ranges).toEqual([undefined, undefined, "bytes=2000-4999"]);
  expect((await readFile(path)).equals(content)).toBe(true);
  expect(await readdir(folder)).toEqual(["a"]);
});

function gatewayAt(baseUrl: string): Gateway {
  const gateway = connect({ baseUrl, credentials: staticToken("token") });
  onTestFinished(() => gateway.close());
  return gateway;
}

const HALF = 2000;

/** Answers the first bytes of the content and no more, until `end` is called; from then on all that is asked for. */
async function halfServer() {
  const ranges: (string | undefined)[] = [];
  let mayEnd = false;
  const { baseUrl } = await serve((request, response) => {
    if (request.url === "/v1/nodes/n1") {
      answerJson(response, 200, exampleNode({ size: content.length, contentHash }));
      return;
    }
    const { range } = request.headers;
    ranges.push(range);
    const start = Number(/^bytes=(\d+)-/.exec(range ?? "bytes=0-")?.[1]);
    response.writeHead(range === undefined ? 200 : 206, {
      etag: '"v1"',
      "content-length": content.length - start,
      ...(range && { "content-range": `bytes ${start}-${content.length - 1}/${content.length}` }),
    });
    if (mayEnd) response.end(content.subarray(start));
    else response.write(content.subarray(0, HALF));
  });
  return {
    baseUrl,
    ranges,
    end() {
      mayEnd = true;
    },
  };
}

test("a version is downloaded whatever the branch, so naming both is refused before anything is sent", async () => {
  const path = join(await temporaryFolder(), "a");
  const { gateway, requests } = scripted([]);
  const error = await failureOf(gateway.files.download("n1", path, { version: "v1", branch: "b" }));
  expect([error.code, error.field, requests.length]).toEqual(["invalid", "version", 0]);
});
