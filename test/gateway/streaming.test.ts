/** Large contents go through a gateway without being held in its memory. */
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { request } from "node:http";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { writtenNode } from "../../src/contract/resources.ts";
import { bundleGateway } from "../support/gateway-bundle.ts";
import { warmGateway } from "../support/gateway-child.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const SIZE = 256 * 1024 * 1024;
const GROWTH_MAX = 100 * 1024 * 1024;
const CHUNK = Buffer.alloc(1024 * 1024, "0123456789abcdef");

/** Memory at its highest so far, bytes. */
async function peakMemory(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  return Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]) * 1024;
}

test("256 MiB in and out, with memory that stays flat", { timeout: 300_000 }, async () => {
  const folder = await temporaryFolder();
  const gateway = await warmGateway(await bundleGateway(folder), path.join(folder, "data")).start();
  if (gateway === undefined) throw new Error("The gateway did not start.");
  onTestFinished(() => {
    gateway.end("SIGKILL");
    return gateway.ended;
  });
  const authorization = `Bearer ${gateway.token}`;
  const before = await peakMemory(gateway.pid);
  const expected = createHash("sha256");

  const text = await new Promise<string>((resolve, reject) => {
    const upload = request(
      `${gateway.baseUrl}/v1/files/large`,
      { method: "POST", headers: { authorization, "content-type": "multipart/form-data; boundary=B" } },
      (answer) => {
        let body = "";
        answer.on("data", (chunk) => {
          body += String(chunk);
        });
        answer.on("end", () => resolve(body));
      },
    );
    upload.on("error", reject);
    upload.write('--B\r\nContent-Disposition: form-data; name="file"\r\nContent-Type: text/x\r\n\r\n');
    let sent = 0;
    const send = () => {
      while (sent < SIZE) {
        expected.update(CHUNK);
        sent += CHUNK.length;
        if (!upload.write(CHUNK)) {
          upload.once("drain", send);
          return;
        }
      }
      upload.end("\r\n--B--\r\n");
    };
    send();
  });
  const node = writtenNode.parse(JSON.parse(text));
  expect(node).toMatchObject({ size: SIZE, contentHash: expected.digest("hex") });

  const answer = await fetch(`${gateway.baseUrl}/v1/nodes/${node.id}/content`, { headers: { authorization } });
  const received = createHash("sha256");
  for await (const chunk of answer.body ?? []) received.update(chunk);
  expect(received.digest("hex")).toBe(node.contentHash);
  expect((await peakMemory(gateway.pid)) - before).toBeLessThan(GROWTH_MAX);
});
