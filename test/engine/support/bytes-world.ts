/**
 * The byte flows with everything around them in memory: rows, files, a scripted gateway, a clock
 * that stands still. `crash` gives what a successor of the killed process would find.
 */
import { createHash } from "node:crypto";
import type { DirtyLog } from "../../../src/content/dirty-log.ts";
import { createLayout } from "../../../src/content/layout.ts";
import type { Attributes } from "../../../src/contract/attributes.ts";
import type { Node } from "../../../src/contract/resources.ts";
import type { Caller, HandleId, OpenFlags, Stat } from "../../../src/engine/api/index.ts";
import { type EngineSettings, parseRequest, type Request } from "../../../src/engine/core/index.ts";
import {
  createActivity,
  createDisk,
  createFreshness,
  createNetwork,
  createReadOnly,
} from "../../../src/engine/host/index.ts";
import { createFileSystem, createPrefetch } from "../../../src/engine/ops/index.ts";
import { createIncoming } from "../../../src/engine/remote/index.ts";
import { createParts, recoverContents } from "../../../src/engine/start/index.ts";
import { createQuota, createSync } from "../../../src/engine/sync/index.ts";
import { createTree } from "../../../src/engine/tree/index.ts";
import { createOutgoing } from "../../../src/engine/upload/index.ts";
import { millisecondsOf, type RowTime, rowTime } from "../../../src/lib/clocks.ts";
import type { Logger } from "../../../src/lib/log.ts";
import { timeFromNanoseconds } from "../../../src/lib/time.ts";
import type { Connection } from "../../../src/metadata/database.ts";
import { type InodeId, kernelNodeId } from "../../../src/metadata/ids.ts";
import type { Inode } from "../../../src/metadata/inodes.ts";
import { createMetadata, ROOT_INODE } from "../../../src/metadata/metadata.ts";
import { born } from "../../../src/metadata/nodes.ts";
import { openNoRows, openRows } from "../../support/in-memory.ts";
import { createMemoryFiles, type MemoryFiles } from "../../support/memory-files.ts";
import { createMemoryPassthrough, type MemoryPassthrough } from "../../support/memory-passthrough.ts";
import { createVirtualClock, type VirtualClock } from "../../support/virtual-clock.ts";
import { createMemoryFastPath, type MemoryFastPath } from "./memory-fast-path.ts";
import { createScriptedContent, type ScriptedContent } from "./scripted-content.ts";
import { slowFiles } from "./slow-files.ts";

const WORKSPACE = { id: "workspace", name: "workspace", rootId: "root" };
const ROOT = kernelNodeId(1);
export const CALLER: Caller = { uid: 1000, gid: 1000, pid: 1, signal: new AbortController().signal };
const READ: OpenFlags = { read: true, write: false, append: false, truncate: false, exclusive: false };

export type Parts = ReturnType<typeof createParts>;

/** The same with some parts replaced. What tree/, sync/, remote/, upload/ and ops/ do for others goes by those. */
export function withParts(context: Parts, changed: Partial<Parts>): Parts {
  const parts = Object.assign({ ...context }, changed);
  const withTree = Object.assign(parts, createTree(parts));
  const withSync = Object.assign(withTree, createSync(withTree));
  const withRemote = Object.assign(withSync, createIncoming(withSync), createOutgoing(withSync));
  return Object.assign(withRemote, createPrefetch(withRemote));
}

export interface BytesWorld {
  /** With the state of the open files. */
  readonly context: Parts;
  readonly clock: VirtualClock;
  readonly files: MemoryFiles;
  readonly gateway: ScriptedContent;
  /** Where the world was told to have it. */
  readonly passthrough: MemoryPassthrough | undefined;
  /** What passes everybody by goes by it; what this world reads and writes goes the long way. */
  readonly fastPath: MemoryFastPath;
  /** What was logged as an error or warning. */
  readonly complaints: string[];
  /** A file the gateway has, nothing of it here; `hash: null`: the gateway does not tell. */
  addRemote(content: Uint8Array, options?: { hash?: string | null; attributes?: Attributes; name?: string }): Inode;
  inode(id: InodeId | undefined): Inode;
  /** Made here, in the root, which is known from then on; open for reading and writing. */
  create(): Promise<{ inode: Inode; handle: HandleId; name: string }>;
  open(inode: Inode, flags?: Partial<OpenFlags>): Promise<HandleId>;
  close(handle: HandleId): Promise<void>;
  read(handle: HandleId, offset: number, size: number, signal?: AbortSignal): Promise<Uint8Array>;
  write(handle: HandleId, offset: number, data: Uint8Array): Promise<number>;
  readAll(inode: Inode): Promise<Uint8Array>;
  /** By the path, or by an open handle. */
  truncate(id: InodeId, size: number, handle?: HandleId): Promise<void>;
  /** As a program is shown it. */
  stat(id: InodeId | undefined): Promise<Stat>;
  /** As a start does with what a crash has left, before and after the mount is used. */
  recover(): Promise<void>;
  /** As kill -9: the world is dead, the one it returns goes on from its rows and files. */
  crash(options?: { boot?: string; rows?: Uint8Array }): BytesWorld;
  /** As power loss that only the rows feel: they are as they were when they were synced last, the files as they are. */
  powerLoss(): Promise<BytesWorld>;
}

interface Remains {
  readonly database: Connection;
  readonly files: MemoryFiles;
  readonly clock: VirtualClock;
  readonly gateway: ScriptedContent;
  /** Turns of the microtask queue that each call on a file takes. */
  readonly turns: () => number;
  readonly isPassing: boolean;
}

export async function createBytesWorld(
  settings: Partial<EngineSettings> = {},
  options: {
    capacity?: number;
    turns?: () => number;
    isPassing?: boolean;
    /** Around the connection to the rows. */
    rows?: (database: Connection) => Connection;
  } = {},
): Promise<BytesWorld> {
  const clock = createVirtualClock();
  const now = stampsOf(clock);
  const { capacity, turns = () => 0, isPassing = false, rows = (database) => database } = options;
  const files = createMemoryFiles({ now, ...(capacity === undefined ? {} : { capacity }) });
  const database = rows(openNoRows());
  const world = build({ database, files, clock, gateway: createScriptedContent(), turns, isPassing }, settings);
  await world.context.paths.prepare();
  world.context.metadata.transaction(() => {
    const { inodes } = world.context.metadata;
    inodes.create({ ...EMPTY, kind: "folder", attributes: {}, hash: null, content: "clean" });
    world.context.metadata.createRootEntry();
  });
  return world;
}

/** As a kernel's: finer than the wall clock, and no two alike. */
function stampsOf(clock: VirtualClock) {
  let stamps = 0n;
  return () => timeFromNanoseconds(BigInt(clock.wallClock()) * 1_000_000n + ++stamps);
}

/** Nothing is told of what is written. */
const NO_LIST: DirtyLog = {
  isNew: false,
  add() {},
  flush: async () => {},
  sync: async () => {},
  read: async () => ({ written: new Map(), isWhole: false }),
  replace: async () => {},
  isLong: () => false,
  close: async () => {},
};

const EMPTY = {
  size: 0,
  originNode: null,
  originVersion: null,
  atime: "0.000000000",
  ctime: "0.000000000",
} as const;

export function hashOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/** As the gateway tells of a file in the root. */
export function remoteNode(name: string, content: Uint8Array, more: Partial<Node> = {}): Node {
  return {
    id: name,
    kind: "file",
    path: `/${name}`,
    name,
    parentId: "root",
    mimeType: null,
    size: content.length,
    head: `version of ${name}`,
    contentHash: hashOf(content),
    lastKey: null,
    revision: 1,
    createdAt: "2026-01-01T00:00:00.000Z",
    modifiedAt: "2026-01-01T00:00:00.000Z",
    attributes: {},
    ...more,
  };
}

/** Bytes after which a pattern repeats. */
const PERIOD = 256 * 255;

/** Bytes that are never zero and differ from place to place. */
export function pattern(length: number, seed = 1): Uint8Array {
  const bytes = new Uint8Array(length);
  const known = Math.min(length, PERIOD);
  for (let i = 0; i < known; i += 1) bytes[i] = ((i * 31 + (i >>> 8) * 17 + seed * 101) % 255) + 1;
  for (let filled = known; filled < length; filled *= 2) bytes.copyWithin(filled, 0, filled);
  return bytes;
}

function build(remains: Remains, changed: Partial<EngineSettings>): BytesWorld {
  const { database, files, clock, gateway } = remains;
  const complaints: string[] = [];
  const complain = (fields: object, message: string) => {
    const { err } = fields as { err?: unknown };
    complaints.push(err instanceof Error ? `${message}: ${err.message}` : message);
  };
  const log: Logger = { debug() {}, info() {}, warn: complain, error: complain, isLevelEnabled: () => true };
  const slow = slowFiles(files, remains.turns);
  const passthrough = remains.isPassing ? createMemoryPassthrough(files) : undefined;
  const fastPath = createMemoryFastPath(files, clock.wallClock);
  const runtime = {
    ...clock,
    now: () => rowTime(clock.wallClock()),
    ageOf: (time: RowTime) => clock.wallClock() - millisecondsOf(time),
    files: slow,
  };
  const metadata = createMetadata<Request>(database, parseRequest);
  const activity = createActivity();
  const network = createNetwork(runtime, {
    scopes: undefined,
    isOnline: true,
    onLacksRole() {},
    onChange: () => activity.progressed(),
  });
  const settings: EngineSettings = {
    owner: { uid: 1000, gid: 1000 },
    owners: "mine",
    umask: 0o022,
    cacheLimit: 2 ** 40,
    durability: "local",
    readOnly: false,
    hostName: "here",
    boot: "boot",
    debounceMs: 500,
    maximumAgeMs: 3_000,
    pollMs: 1_000,
    concurrency: 4,
    ...changed,
  };
  const context = createParts({
    ...{ metadata, runtime, log, settings, network, activity, fastPath, passthrough },
    replays: () => ({ mayBeWatched() {} }),
    quota: () => quota,
    disk: createDisk({ stateDisk: undefined, limits: undefined, folder: "/state", log, onChange() {} }),
    client: gateway.client,
    paths: createLayout(slow, "/state"),
    dirtyLog: NO_LIST,
    readOnly: createReadOnly(WORKSPACE, { isAskedFor: settings.readOnly, lack: undefined, onChange() {} }),
    workspace: WORKSPACE,
    fresh: createFreshness(runtime),
    async syncRows() {
      syncedRows = database.serialize();
    },
  });
  context.unsent.mostly = 0;
  const quota = createQuota(context, context.workspace, true);
  let syncedRows: Uint8Array = database.serialize();
  let names = metadata.inodes.newestKernelNodeId() - 1;

  const world: BytesWorld = {
    context,
    clock,
    files,
    gateway,
    passthrough,
    fastPath,
    complaints,
    addRemote(content, { hash = hashOf(content), attributes = {}, name = `remote-${++names}` } = {}) {
      const version = `version of ${name}`;
      gateway.versions.set(version, content);
      return metadata.transaction(() => {
        const inode = metadata.inodes.create({
          ...EMPTY,
          kind: "file",
          attributes,
          hash,
          content: "clean",
          size: content.length,
          originNode: name,
          originVersion: version,
        });
        const entry = metadata.entries.create(ROOT_INODE, name, inode.id);
        const node = remoteNode(name, content, { head: version, contentHash: hash, attributes });
        metadata.nodes.create(born(entry.id, node));
        return inode;
      });
    },
    inode(id) {
      const inode = id === undefined ? undefined : metadata.inodes.get(id);
      if (inode === undefined) throw new Error(`no inode ${id}`);
      return inode;
    },
    async create() {
      const flags = { ...READ, write: true, exclusive: true };
      const name = `made-${++names}`;
      // No list is asked for: the gateway has none.
      metadata.inodes.update(ROOT_INODE, { listed: 0 });
      const { stat, handle } = await createFileSystem(context).create(CALLER, ROOT, name, 0o644, flags);
      return { inode: world.inode(stat.inode), handle, name };
    },
    async open(inode, flags = {}) {
      return (await createFileSystem(context).open(CALLER, inode.kernelNodeId, { ...READ, ...flags })).handle;
    },
    async close(handle) {
      await createFileSystem(context).flush(CALLER, handle);
      await createFileSystem(context).release(handle);
    },
    read: (handle, offset, size, signal = CALLER.signal) =>
      createFileSystem(context).read({ ...CALLER, signal }, handle, offset, size),
    write: (handle, offset, data) =>
      createFileSystem(context).write(CALLER, handle, offset, data, { killPrivileges: false }),
    async readAll(inode) {
      const handle = await world.open(world.inode(inode.id));
      const parts: Uint8Array[] = [];
      for (let offset = 0; ; ) {
        const part = await world.read(handle, offset, 128 * 1024);
        if (part.length === 0) break;
        parts.push(part);
        offset += part.length;
      }
      await world.close(handle);
      return Buffer.concat(parts);
    },
    async truncate(id, size, handle) {
      const { kernelNodeId } = world.inode(id);
      await createFileSystem(context).setattr(CALLER, kernelNodeId, handle === undefined ? { size } : { size, handle });
    },
    stat: async (id) => (await createFileSystem(context).getattr(CALLER, world.inode(id).kernelNodeId)).stat,
    recover: () => recoverContents(context),
    async powerLoss() {
      const next = world.crash({ boot: `after ${settings.boot}`, rows: syncedRows });
      next.context.metadata.settings.set("boot", settings.boot);
      await next.recover();
      return next;
    },
    crash({ boot = settings.boot, rows = database.serialize() } = {}) {
      const copy = openRows(rows);
      const image = files.image();
      files.kill();
      const now = stampsOf(clock);
      return build({ ...remains, database: copy, files: createMemoryFiles({ now, image }) }, { ...settings, boot });
    },
  };
  return world;
}
