/** However much the mount before left, a start reads as little as if it had left nothing: the rest is done while it is used. */
import { expect, test } from "vitest";
import type { Client } from "../../../src/client/client.ts";
import { RemoteError } from "../../../src/client/errors.ts";
import { parseRequest } from "../../../src/engine/core/index.ts";
import { startEngine } from "../../../src/engine/start/index.ts";
import { rowTime } from "../../../src/lib/clocks.ts";
import { SILENT } from "../../../src/lib/log.ts";
import { NO_RANGES } from "../../../src/lib/ranges.ts";
import { openDatabase } from "../../../src/metadata/database.ts";
import { kernelNodeId } from "../../../src/metadata/ids.ts";
import { createMetadata, ROOT_INODE } from "../../../src/metadata/metadata.ts";
import { unborn } from "../../../src/metadata/nodes.ts";
import { recordedRows, scansOf } from "../../support/recorded-rows.ts";
import { createBytesWorld } from "../support/bytes-world.ts";

const TIME = "1.000000000";
const EMPTY = { size: 0, originNode: null, originVersion: null, hash: null, atime: TIME, ctime: TIME } as const;

/** What one start does before the mount can be used, `count` of everything being left by the mount before. */
async function startWith(count: number, boot: string) {
  const world = await createBytesWorld();
  const { runtime, paths, settings } = world.context;
  const database = openDatabase(":memory:");
  const metadata = createMetadata(database, parseRequest);
  const files = new Set<string>();
  metadata.transaction(() => {
    for (const [key, value] of Object.entries({ workspace: "id", workspaceName: "workspace", root: "root", boot })) {
      metadata.settings.set(key as "workspace", value);
    }
    metadata.inodes.create({ ...EMPTY, kind: "folder", attributes: {}, content: "clean" });
    metadata.createRootEntry();
    for (let index = 0; index < count; index += 1) {
      const inode = metadata.inodes.create({ ...EMPTY, kind: "file", attributes: {}, size: 4, content: "dirty" });
      const entry = metadata.entries.create(ROOT_INODE, `file-${index}`, inode.id);
      const node = metadata.nodes.create(unborn(entry.id, "file", rowTime(1), rowTime(1)));
      const live = { originNode: null, originVersion: null, size: 4, bytes: 4, missing: NO_RANGES, usedAt: rowTime(1) };
      metadata.cacheFiles.create({ kernelNodeId: inode.kernelNodeId, ...live });
      files.add(paths.cacheFile(inode.kernelNodeId));
      const snapshot = {
        inode: inode.id,
        changes: inode.changes,
        kernelNodeId: inode.kernelNodeId,
        size: 4,
        hash: "hash",
        mtime: TIME,
      };
      const { id } = metadata.snapshots.create({ ...snapshot, synced: 1, boot });
      const upload = { do: "upload", parent: "root", name: entry.name, size: 4, hash: "hash", attributes: {} };
      const times = { nextAt: rowTime(1), createdAt: rowTime(1) };
      const request = parseRequest(upload);
      metadata.attempts.create({ node: node.id, key: `key-${index}`, request, snapshot: id, ...times });
      const lost = metadata.inodes.create({ ...EMPTY, kind: "file", attributes: {}, content: "dirty" });
      const name = metadata.entries.create(ROOT_INODE, `lost-${index}`, lost.id);
      metadata.inodes.replaceKernelNodeId(lost.id, {});
      metadata.entries.remove(name.id);
      metadata.gone.add({ kind: "live", id: kernelNodeId(1_000_000 + index) });
    }
  });
  for (const path of files) {
    await paths.prepareFolderOf(path);
    await (await runtime.files.open(path, "w+")).close();
  }

  let [rows, calls] = [0, 0];
  const scans = new Set<string>();
  const counted = recordedRows(database, (sql, touched, parameters) => {
    rows += touched;
    for (const scan of scansOf(database, sql, parameters)) scans.add(scan);
  });
  const client: Client = {
    ...world.context.client,
    async findWorkspace() {
      throw new RemoteError("unauthorized", "no token");
    },
  };
  const rest = { syncRows: async () => {}, workspace: "workspace", scopes: undefined, log: SILENT };
  const engine = await startEngine({
    runtime: {
      ...runtime,
      files: new Proxy(runtime.files, {
        get(target, name) {
          const value: unknown = Reflect.get(target, name, target);
          if (typeof value !== "function") return value;
          return (...parameters: unknown[]) => {
            calls += 1;
            return Reflect.apply(value, target, parameters);
          };
        },
      }),
    },
    client,
    paths,
    database: counted,
    settings: { ...settings, boot: "boot" },
    ...rest,
  });
  const before = { rows, calls, scans: [...scans] };
  while (engine.context.fileState.tasks.size > 0) await world.clock.advance(1);
  const left = database.prepare("SELECT (SELECT count(*) FROM nameless) + (SELECT count(*) FROM gone) AS left").get();
  await engine.stop();
  return { before, left };
}

for (const [end, boot] of [
  ["that ended", ""],
  ["that was killed", "boot"],
] as const) {
  test(`what waits makes no start longer, after a mount ${end}`, async () => {
    const [few, many] = [await startWith(3, boot), await startWith(150, boot)];
    expect(many.before.rows).toBe(few.before.rows);
    expect(many.before.calls).toBe(few.before.calls);
    // Of as many rows as files were open, of one, and of one a table.
    const isShort = /^SCAN (writing|held|sqlite_sequence|relist|overtaken: SELECT 1 AS one FROM overtaken LIMIT 1$)/;
    expect(many.before.scans.filter((scan) => !isShort.test(scan))).toEqual([]);
    expect([few.left, many.left]).toEqual([{ left: 0 }, { left: 0 }]);
  });
}
