/** No room left: 507, nothing of it stays, and the gateway goes on with what there is. */
import { execFileSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { rm, statfs, writeFile } from "node:fs/promises";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { connect, type RemoteError, staticToken } from "../../src/client/index.ts";
import { startGateway } from "../../src/gateway/start.ts";
import { createTestCore } from "../support/gateway-core.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const DISK_BYTES = 24 * 2 ** 20;

test("a store that is full refuses every change, shows what it has, and goes on when it has grown", async () => {
  const core = createTestCore();
  const file = await core.file("/f", "kept");
  core.database.pragma("max_page_count = 1");
  const changes: (() => Promise<{ status: number }>)[] = [
    // Rows of other tables may still have room in pages they have.
    () => core.upload("/v1/files/new", "x".repeat(30_000)),
    () => core.upload(`/v1/nodes/${file.id}/content`, "x".repeat(30_000), { method: "PUT" }),
    () => core.call("PATCH", `/v1/nodes/${file.id}`, { json: { attributes: { note: "x".repeat(30_000) } } }),
  ];
  for (const change of changes) expect((await change()).status).toBe(507);
  expect([await core.names("/"), (await core.node(file.id)).revision]).toEqual([["f"], 1]);
  expect((await core.call("GET", `/v1/nodes/${file.id}/content`)).bytes.toString()).toBe("kept");
  core.database.pragma("max_page_count = 100000");
  for (const change of changes) expect((await change()).status).toBeLessThan(300);
});

/** A file system of its own, as large as the test wants; undefined where this user may not make one. */
async function smallDisk(): Promise<string | undefined> {
  const folder = await temporaryFolder();
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${DISK_BYTES}`, "tmpfs", folder], { stdio: "pipe" });
  } catch {
    return undefined;
  }
  onTestFinished(() => void execFileSync("umount", ["-l", folder]));
  return folder;
}

test("a disk that is full while an upload comes in keeps nothing of it, and others are served", async (context) => {
  const disk = await smallDisk();
  if (disk === undefined) return context.skip("mounting a tmpfs needs root");
  const dataDir = path.join(disk, "data");
  const running = await startGateway({ dataDir });
  onTestFinished(() => running.close());
  const gateway = connect({
    baseUrl: running.baseUrl,
    credentials: staticToken(await running.issueToken({ workspace: "workspace" })),
    retries: { tries: 2, firstDelayMs: 1 },
  });
  onTestFinished(() => gateway.close());
  const kept = await gateway.files.upload("/kept", Buffer.alloc(2 ** 20, 1));
  const refused = async (name: string, size: number, options = {}) => {
    const error: RemoteError = await gateway.files.upload(name, Buffer.alloc(size), options).then(
      () => expect.unreachable(`${name} was stored`),
      (reason: RemoteError) => reason,
    );
    expect([name, error.code, error.status]).toEqual([name, "server", 507]);
  };
  await refused("/large", DISK_BYTES);
  // Nothing is left of it: what fits goes in.
  const blobs = () =>
    readdirSync(path.join(dataDir, "blobs"), { recursive: true }).filter((name) => /.{30}/.test(String(name)));
  expect(blobs().length).toBe(1);
  await gateway.files.upload("/fits", Buffer.alloc(2 ** 20, 2));

  const filler = path.join(disk, "filler");
  await writeFile(filler, Buffer.alloc(DISK_BYTES)).catch(() => {});
  expect((await statfs(disk)).bavail).toBe(0);
  await refused("/medium", 2 ** 20, { retries: false });
  // Contents in the store's own table, until its log has no room: what was answered before is there.
  let stored = 0;
  let last: unknown;
  while (last === undefined && stored < 1000) {
    try {
      await gateway.files.upload(`/small/${stored}`, Buffer.alloc(30_000, 3), { retries: false });
      stored += 1;
    } catch (error) {
      last = error;
    }
  }
  expect(last).toMatchObject({ code: "server", status: 507 });
  expect((await gateway.nodes.list({ path: "/" }).all()).map(({ name }) => name)).toEqual(
    stored === 0 ? ["fits", "kept"] : ["fits", "kept", "small"],
  );
  expect((await (await gateway.files.read(kept.id)).buffer()).equals(Buffer.alloc(2 ** 20, 1))).toBe(true);
  expect(blobs().length).toBe(2);

  await rm(filler);
  await gateway.files.upload("/after", Buffer.alloc(2 ** 20, 4));
  expect(await gateway.nodes.byPath("/after")).toMatchObject({ size: 2 ** 20 });
});
