/** The gateway's Unix socket: the same gateway, for its owner alone. */
import { existsSync, mkdirSync, statSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { startGateway } from "../../src/gateway/start.ts";
import type { Logger } from "../../src/lib/log.ts";
import { SILENT } from "../../src/lib/log.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

async function start(socketPath: string, log: Logger = SILENT) {
  const gateway = await startGateway({ dataDir: await temporaryFolder(), socketPath, log });
  onTestFinished(() => gateway.close());
  return gateway;
}

function get(socketPath: string, path: string, token: string): Promise<[status: number | undefined, text: string]> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}` };
    const call = request({ socketPath, path, headers, agent: false }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part) => {
        text += part;
      });
      response.on("end", () => resolve([response.statusCode, text]));
    });
    call.on("error", reject);
    call.end();
  });
}

test.each(["s", join("n".repeat(100), "s")])(
  "it answers there as at its port, and is gone with the gateway: %s",
  async (name) => {
    const path = join(await temporaryFolder(), name);
    mkdirSync(join(path, ".."), { recursive: true });
    // Left by a gateway that was killed.
    writeFileSync(path, "");
    const gateway = await start(path);
    expect(gateway.hasSocket).toBe(true);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    const token = await gateway.issueToken({ workspace: "workspace" });
    const there = name.length > 100 ? undefined : await get(path, "/v1/workspaces", token);
    const answer = await fetch(`${gateway.baseUrl}/v1/workspaces`, { headers: { authorization: `Bearer ${token}` } });
    if (there !== undefined) expect(there).toEqual([200, await answer.text()]);
    await gateway.close();
    expect(existsSync(path)).toBe(false);
  },
);

test("it ends within its time under whoever came by the socket, and does not say a word", async () => {
  const path = join(await temporaryFolder(), "s");
  const gateway = await start(path);
  const silent = connect(path);
  const ended = new Promise((resolve) => silent.on("close", resolve).on("error", () => {}));
  await new Promise((resolve) => silent.on("connect", resolve));
  silent.write("GET /v1/workspaces HTTP/1.1\r\n");
  await gateway.close();
  await ended;
});

test("where no socket can be, it is reached by its port alone, and says so", async () => {
  const said: string[] = [];
  const path = join(await temporaryFolder(), "absent", "s");
  const gateway = await start(path, { ...SILENT, error: (_, message) => said.push(message) });
  expect(gateway.hasSocket).toBe(false);
  expect(said).toEqual(["the Unix socket cannot be made: only the port leads here"]);
  expect((await fetch(gateway.baseUrl)).status).toBe(404);
});
