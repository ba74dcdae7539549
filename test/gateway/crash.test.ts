/** What was answered with success is there, whenever the gateway is killed. */
import { createHash } from "node:crypto";
import { readdir } from "node:fs/promises";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { journalPage, type WrittenNode, writtenNode } from "../../src/contract/resources.ts";
import { type GatewayChild, startGatewayChild } from "../support/gateway-child.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const KILLS = 10;
const WRITERS = 4;
/** Kept in the store, kept as a blob, and a blob of several writes. */
const SIZES = [100, 40_000, 700_000];

interface Written {
  readonly node: WrittenNode;
  readonly hash: string;
  readonly key: string;
}

function contentOf(name: string, size: number): Uint8Array<ArrayBuffer> {
  const seed = createHash("sha256").update(name).digest();
  return new Uint8Array(size).map((_, index) => (seed[index % 32] ?? 0) ^ (index >> 8));
}

const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

function upload(gateway: GatewayChild, name: string, key: string): Promise<Response> {
  const body = new FormData();
  body.set("metadata", JSON.stringify({ idempotencyKey: key }));
  const size = SIZES[Number(name.split("-").at(-1)) % SIZES.length] ?? 0;
  body.set("file", new Blob([contentOf(name, size)]), "x");
  const headers = { authorization: `Bearer ${gateway.token}`, "if-none-match": "*" };
  return fetch(`${gateway.baseUrl}/v1/files/${name}`, { method: "POST", body, headers });
}

test(`everything answered is there after each of ${KILLS} kills, and nothing twice`, { timeout: 120_000 }, async () => {
  const dataDir = await temporaryFolder();
  const written: Written[] = [];
  const unanswered: { name: string; key: string }[] = [];
  let gateway: GatewayChild | undefined;
  onTestFinished(() => gateway?.end("SIGKILL"));
  let counter = 0;

  for (let kill = 0; kill <= KILLS; kill++) {
    const running = await startGatewayChild(dataDir);
    gateway = running;
    const get = (url: string) =>
      fetch(`${running.baseUrl}${url}`, { headers: { authorization: `Bearer ${running.token}` } });
    // What the last one left without an answer is asked for again: it happens once, whether it had or not.
    for (const { name, key } of unanswered.splice(0)) {
      const answer = await upload(running, name, key);
      expect(answer.status).toBe(201);
      written.push({ node: writtenNode.parse(await answer.json()), hash: "", key });
    }
    for (const { node, hash } of written) {
      const content = await get(`/v1/nodes/${node.id}/content`);
      expect(content.status).toBe(200);
      const bytes = new Uint8Array(await content.arrayBuffer());
      expect(sha256(bytes)).toBe(hash === "" ? node.contentHash : hash);
    }
    const journal = journalPage.parse(await (await get("/v1/journal?pageSize=1000")).json());
    const keys = journal.items.flatMap((entry) => (entry.kind === "created" && entry.key ? [entry.key] : []));
    expect(keys.toSorted()).toEqual([...new Set([...written.map(({ key }) => key)])].toSorted());
    if (kill === KILLS) break;

    // Killed when a number of uploads is through that falls anywhere within the others.
    const enough = written.length + 3 + ((kill * 7) % 11);
    const ended = Array.from({ length: WRITERS }, async () => {
      while (true) {
        const name = `f-${counter++}`;
        const key = `key-${name}`;
        const size = SIZES[Number(name.split("-").at(-1)) % SIZES.length] ?? 0;
        // No answer, or not all of it: the gateway is gone.
        const answer = await upload(running, name, key).catch(() => undefined);
        const text = await answer?.text().catch(() => undefined);
        if (answer === undefined || text === undefined) {
          unanswered.push({ name, key });
          return;
        }
        expect([answer.status, text]).toEqual([201, text]);
        written.push({ node: writtenNode.parse(JSON.parse(text)), hash: sha256(contentOf(name, size)), key });
        if (written.length >= enough) void running.end("SIGKILL");
      }
    });
    await Promise.all(ended);
    await running.end("SIGKILL");
    expect(unanswered.length).toBeGreaterThan(0);
  }
  await gateway?.end("SIGTERM");
  // Blobs of uploads that were cut off are gone after the next start.
  const blobs = (await readdir(path.join(dataDir, "blobs"), { recursive: true })).filter((name) => name.length > 10);
  const large = new Set(written.filter(({ node }) => node.size > 32 * 1024).map(({ node }) => node.id));
  expect(blobs.length).toBe(large.size);
});
