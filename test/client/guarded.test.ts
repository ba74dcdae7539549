/**
 * A gateway on this machine is given the token only where its program is this user's or root's: by TCP the kernel says whose
 * the listener is, a Unix socket says it by its owner.
 */
import { lchownSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createHttpTransport, type HttpTransportOptions } from "../../src/client/http-transport.ts";
import { isLoopback, listeningUsers } from "../../src/client/listener.ts";
import { createThreadTransport } from "../../src/client/thread-transport.ts";
import type { Transport } from "../../src/contract/http.ts";
import { becomeStranger, STRANGER, type Stranger } from "../support/stranger.ts";
import { startHttpThread } from "./support/server.ts";

const OWN = process.getuid?.() ?? 0;
const TOKEN = "Bearer not-for-strangers";

let folder: string;
const servers: Server[] = [];
const transports: Transport[] = [];
let stranger: Stranger | undefined;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "wsfs-test-"));
});
afterEach(async () => {
  for (const transport of transports.splice(0)) await transport.close();
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
  await stranger?.end();
  stranger = undefined;
  rmSync(folder, { recursive: true });
});

/** Answers with the Host that was asked for. */
async function listen(at: { host: string } | { path: string }): Promise<number> {
  const server = createServer((request, response) => void response.end(request.headers.host));
  servers.push(server);
  await new Promise<void>((resolve) => server.listen("path" in at ? at : { port: 0, ...at }, resolve));
  const address = server.address() as AddressInfo | string;
  return typeof address === "string" ? 0 : address.port;
}

/** Reads go by this thread, changes by the other one. */
const KINDS = ["GET", "DELETE"] as const;

async function ask(method: (typeof KINDS)[number], options: HttpTransportOptions): Promise<string> {
  const transport = createThreadTransport({ ...options, startThread: startHttpThread });
  transports.push(transport);
  const { body } = await transport.send({
    ...{ method, path: "/v1/x", query: {} },
    headers: { authorization: TOKEN, accept: "application/json" },
  });
  let text = "";
  for await (const bytes of body) text += Buffer.from(bytes).toString();
  return text;
}

describe.each(KINDS)("%s, guarded", (method) => {
  it.each(["127.0.0.1", "127.0.0.5", "::1", "0.0.0.0", "::"])(
    "is sent to a program of this user's at %s",
    async (host) => {
      const port = await listen({ host });
      const name = host === "::1" ? "[::1]" : host.startsWith("127") ? host : "127.0.0.1";
      expect(await ask(method, { baseUrl: `http://${name}:${port}`, guarded: true })).toBe(`${name}:${port}`);
    },
  );

  it.skipIf(OWN !== 0)("is not sent to one of another user (needs root)", async () => {
    stranger = becomeStranger(0);
    await stranger.listens();
    const baseUrl = `http://localhost:${stranger.port()}`;
    await expect(ask(method, { baseUrl, guarded: true })).rejects.toMatchObject({
      code: "offline",
      message: expect.stringContaining(`a program of user ${STRANGER} listens there and would get the token`),
      details: { isUnsent: true },
    });
    expect(stranger.heard()).toBe("");
    // So it would be heard.
    const unguarded = createHttpTransport({ baseUrl });
    transports.push(unguarded);
    const headers = { authorization: TOKEN };
    const sent = unguarded.send({ method, path: "/v1/x", query: {}, headers });
    sent.catch(() => {});
    const end = performance.now() + 10_000;
    while (!stranger.heard().includes(TOKEN) && performance.now() < end) await new Promise(setImmediate);
    expect(stranger.heard()).toContain(TOKEN);
  });

  it("goes through a Unix socket of this user's, by the name of the base URL, also of a long path", async () => {
    const baseUrl = "http://127.0.0.1:9";
    const path = join(folder, "s");
    await listen({ path });
    expect(await ask(method, { baseUrl, socketPath: path })).toBe("127.0.0.1:9");
    const long = join(folder, "n".repeat(200));
    renameSync(path, long);
    expect(await ask(method, { baseUrl, socketPath: long })).toBe("127.0.0.1:9");
    renameSync(long, path);
  });

  it.each([
    ["a link to one", (path: string) => symlinkSync(`${path}.real`, path), "is a symbolic link"],
    ["a file", (path: string) => writeFileSync(path, ""), "is no socket"],
    ["nothing", () => {}, "no such file"],
    ...(OWN === 0
      ? [
          [
            "another user's",
            (path: string) => {
              renameSync(`${path}.real`, path);
              lchownSync(path, STRANGER, STRANGER);
            },
            `expected a socket of user ${OWN}`,
          ] as const,
        ]
      : []),
  ] as const)("does not go through %s in its place", async (_, put, said) => {
    const path = join(folder, "s");
    await listen({ path: `${path}.real` });
    put(path);
    await expect(ask(method, { baseUrl: "http://127.0.0.1:9", socketPath: path })).rejects.toMatchObject({
      code: "offline",
      message: expect.stringContaining(said),
    });
  });

  it("says by its path that nobody listens at a socket", async () => {
    const path = join(folder, "s");
    await listen({ path: `${path}.real` });
    renameSync(`${path}.real`, path);
    await new Promise((resolve) => servers.pop()?.close(resolve));
    await expect(ask(method, { baseUrl: "http://127.0.0.1:9", socketPath: path })).rejects.toMatchObject({
      code: "offline",
      message: expect.stringContaining(`connect ECONNREFUSED ${path}`),
    });
  });
});

it("tells loopback addresses from others", () => {
  for (const address of ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"]) expect(isLoopback(address)).toBe(true);
  for (const address of ["10.0.0.1", "::", "fe80::1", "::ffff:10.0.0.1", ""]) expect(isLoopback(address)).toBe(false);
});

describe("of the kernel's lists of listeners", () => {
  const HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode";
  const line = (at: string, user: number, state = "0A") =>
    `   0: ${at} 00000000:0000 ${state} 00000000:00000000 00:00000000 00000000  ${user}        0 1060 1 0 100 0 0 10 0`;
  const list = (file: string, ...lines: string[]) => writeFileSync(join(folder, file), [HEAD, ...lines, ""].join("\n"));
  const word = (text: string) => {
    const [number = 0] = new Uint32Array(Uint8Array.from(Buffer.from(text, "hex")).buffer);
    return number.toString(16).toUpperCase().padStart(8, "0");
  };
  const LOCAL = word("7f000001");
  const ANY = "00000000";
  const LOCAL_6 = `${ANY}${ANY}${ANY}${word("00000001")}`;
  const MAPPED = `${ANY}${ANY}${word("0000ffff")}${LOCAL}`;

  it("the most exact one counts", () => {
    list(
      "tcp",
      line(`${ANY}:1F90`, 2),
      line(`${LOCAL}:1F90`, 1),
      line(`${ANY}:1F91`, 3),
      line(`${LOCAL}:1F93`, 9, "01"),
    );
    list("tcp6", line(`${MAPPED}:1F92`, 5), line(`${ANY.repeat(4)}:1F92`, 6), line(`${LOCAL_6}:1F92`, 7));
    const at = (address: string, port: number) => listeningUsers(address, port, folder);
    expect(at("127.0.0.1", 8080)).toEqual([1]);
    expect(at("::ffff:127.0.0.1", 8080)).toEqual([1]);
    expect(at("127.0.0.2", 8080)).toEqual([2]);
    expect(at("127.0.0.1", 8081)).toEqual([3]);
    expect(at("127.0.0.1", 8082)).toEqual([5]);
    expect(at("127.0.0.2", 8082)).toEqual([6]);
    expect(at("::1", 8082)).toEqual([7]);
    expect(at("127.0.0.1", 8083)).toEqual([]);
  });

  it("long ones are read, without what comes behind, and one of IPv6 need not be there", () => {
    const many = Array.from({ length: 3000 }, (_, index) =>
      line(`${ANY}:${(index + 1).toString(16).padStart(4, "0")}`, 1),
    );
    list("tcp", ...many, line(`${LOCAL}:1F90`, 4), line(`${LOCAL}:1F91`, 1, "06"), line(`${LOCAL}:1F92`, 5));
    expect(listeningUsers("127.0.0.1", 8080, folder)).toEqual([4]);
    expect(listeningUsers("127.0.0.1", 8082, folder)).toEqual([]);
    rmSync(join(folder, "tcp"));
    expect(() => listeningUsers("127.0.0.1", 8080, folder)).toThrow(expect.objectContaining({ code: "ENOENT" }));
  });
});
