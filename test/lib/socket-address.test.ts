/** A Unix socket is connected to as what it is: its owner's, and no link to another. */
import { lchownSync, mkdtempSync, renameSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { connect, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { ForeignSocket, openSocket } from "../../src/lib/socket-address.ts";

const OWN = process.getuid?.() ?? 0;
const STRANGER = 54321;

let folder: string;
const servers: Server[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "wsfs-test-"));
});
afterEach(async () => {
  for (const server of servers.splice(0)) await new Promise((resolve) => server.close(resolve));
  rmSync(folder, { recursive: true });
});

/** Whoever connects is told the name. */
async function listen(name: string): Promise<string> {
  const server = createServer((socket) => socket.end(name));
  servers.push(server);
  const path = join(folder, name);
  await new Promise<void>((resolve) => server.listen(path, resolve));
  return path;
}

function told(path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    connect(path)
      .on("error", reject)
      .on("data", (bytes) => {
        text += bytes;
      })
      .on("close", () => resolve(text));
  });
}

it("leads to the socket it was opened as, whatever takes its name", async () => {
  const [mine, other] = [await listen("mine"), await listen("other")];
  const opened = openSocket(mine, OWN);
  renameSync(mine, join(folder, "away"));
  symlinkSync(other, mine);
  expect(await told(opened.path)).toBe("mine");
  opened.close();
  renameSync(join(folder, "away"), mine);
});

it.each(["a symbolic link", "no socket"])("refuses %s", async (what) => {
  const path = join(folder, "x");
  if (what === "no socket") writeFileSync(path, "");
  else symlinkSync(await listen("other"), path);
  expect(() => openSocket(path, OWN)).toThrow(ForeignSocket);
  expect(() => openSocket(path, OWN)).toThrow(`${path} is ${what} of user ${OWN}, expected a socket of user ${OWN}`);
});

it.skipIf(OWN !== 0)("refuses a socket of another user (needs root)", async () => {
  const path = await listen("x");
  lchownSync(path, STRANGER, STRANGER);
  expect(() => openSocket(path, OWN)).toThrow(`is a socket of user ${STRANGER}, expected a socket of user ${OWN}`);
  const opened = openSocket(path, STRANGER);
  expect(statSync(opened.path).isSocket()).toBe(true);
  opened.close();
});

it("says when nothing is there", () => {
  expect(() => openSocket(join(folder, "x"), OWN)).toThrow(expect.objectContaining({ code: "ENOENT" }));
});
