/**
 * What comes after a cut: an engine on what the disk has, and the gateway as it was at that moment.
 * Says what is wrong, one line each; nothing when every promise is kept.
 */
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { z } from "zod";
import { createClient } from "../../../src/client/create-client.ts";
import { staticToken } from "../../../src/client/credentials.ts";
import { RemoteError } from "../../../src/client/errors.ts";
import { createLayout } from "../../../src/content/layout.ts";
import type { Transport } from "../../../src/contract/http.ts";
import { SCOPES } from "../../../src/contract/scopes.ts";
import { startEngine } from "../../../src/engine/start/index.ts";
import { createGateway } from "../../../src/gateway/core.ts";
import { minus } from "../../../src/lib/clocks.ts";
import { describeError, type Logger, SILENT } from "../../../src/lib/log.ts";
import { openSqlite } from "../../../src/lib/sqlite/index.ts";
import { timeFromMilliseconds, timeFromNanoseconds } from "../../../src/lib/time.ts";
import { openDatabase } from "../../../src/metadata/database.ts";
import type { Calls } from "../../sim/support/calls.ts";
import { createKernel } from "../../sim/support/kernel.ts";
import { createKernelMemory } from "../../sim/support/kernel-memory.ts";
import { differences, gatewayTree, hashOf, type Line, readFile, treeOf } from "../../sim/support/tree.ts";
import { createCoreTransport } from "../core-transport.ts";
import { createMemoryFiles } from "../memory-files.ts";
import { createVirtualClock, type VirtualClock } from "../virtual-clock.ts";
import type { CutDisk } from "./disk.ts";
import { gatewayAt, type Recording, SIGNING_KEY, STATE } from "./record.ts";

type StartedEngine = Awaited<ReturnType<typeof startEngine>>;

const mark = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("saved"), name: z.string(), hash: z.string() }),
  z.object({ kind: z.literal("prefix"), name: z.string(), hash: z.string(), size: z.number() }),
  z.object({ kind: z.literal("begin"), name: z.string(), allow: z.array(z.string()).optional() }),
  z.object({ kind: z.literal("state"), hash: z.string() }),
  z.object({ kind: z.literal("rows"), name: z.string(), rows: z.number() }),
  z.object({ kind: z.literal("gone"), name: z.string() }),
  z.object({ kind: z.literal("sent"), name: z.string(), hash: z.string() }),
  z.object({ kind: z.literal("gateway"), state: z.number() }),
]);

interface Promised {
  /** Contents the name may have; undefined: anything. Null: it must not be there. */
  readonly contents: ReadonlySet<string> | undefined | null;
}

/** What had been promised when the power went. */
export interface Promises {
  readonly files: Map<string, Promised>;
  readonly prefixes: Map<string, { readonly size: number; readonly hash: string }>;
  readonly rows: Map<string, number>;
  /** What the gateway shows, by name. */
  readonly sent: Map<string, string>;
  gateway: number;
}

export const noPromises = (): Promises => ({
  files: new Map(),
  prefixes: new Map(),
  rows: new Map(),
  sent: new Map(),
  gateway: 0,
});

export function promise(promises: Promises, value: unknown): void {
  const said = mark.parse(value);
  switch (said.kind) {
    case "saved":
      promises.files.set(said.name, { contents: new Set([said.hash]) });
      return;
    case "begin": {
      const before = promises.files.get(said.name);
      const isOpen = said.allow === undefined || before === undefined || !before.contents;
      const contents = isOpen ? undefined : new Set([...(before.contents ?? []), ...(said.allow ?? [])]);
      promises.files.set(said.name, { contents });
      promises.sent.delete(said.name);
      return;
    }
    case "sent":
      promises.sent.set(said.name, said.hash);
      return;
    case "gone":
      promises.files.set(said.name, { contents: null });
      return;
    case "prefix":
      promises.prefixes.set(said.name, said);
      return;
    case "rows":
      promises.rows.set(said.name, said.rows);
      return;
    case "gateway":
      promises.gateway = said.state;
  }
}

/** Contents that are whole: one of these a version may be. */
export function wholeContents(recording: Recording): Set<string> {
  const whole = new Set<string>();
  for (const { change } of recording.recorded) {
    if (change.kind !== "mark") continue;
    const said = mark.parse(change.value);
    if (said.kind === "state") whole.add(said.hash);
  }
  return whole;
}

const PARKED = /machine went down/;
const DRAIN_MS = 300_000;

interface Machine {
  readonly clock: VirtualClock;
  readonly engine: StartedEngine;
  run<T>(work: Promise<T>): Promise<T>;
}

export async function problemsAfter(
  recording: Recording,
  disk: CutDisk,
  promises: Promises,
  whole: ReadonlySet<string>,
  time: bigint,
): Promise<string[]> {
  const problems: string[] = [];
  const clock = createVirtualClock();
  // Some minutes later; rows and files have wall times of the recording.
  clock.jump(Number(time / 1_000_000n) + 180_000 - clock.wallClock());
  const run = runner(clock);

  const { database: store, blobs } = gatewayAt(recording, promises.gateway);
  const gateway = createGateway({ clock, database: store, blobs, signingKey: SIGNING_KEY, options: {}, log: SILENT });
  const { id: workspace, root } = gateway.ensureWorkspace("workspace");
  let isGone = false;
  const core = createCoreTransport(() => gateway);
  const transport: Transport = {
    ...core,
    async send(request) {
      if (isGone) throw new RemoteError("offline", "there is no gateway");
      return core.send(request);
    },
  };
  const client = createClient({
    transport,
    credentials: staticToken(gateway.issueToken({ scopes: SCOPES, ttlSeconds: 86400, workspace })),
    now: clock.wallClock,
  });
  const before = await run(gatewayTree(client, root));
  for (const [name, hash] of promises.sent) {
    const has = before.get(name)?.content;
    if (has !== hash) problems.push(`${name}: the gateway has ${has}, not ${hash}, which was told to be there`);
  }

  const rows = openRows(disk, problems);
  if (rows === undefined) return problems;
  const complain = (fields: object, message: string) => {
    const { err } = fields as { err?: unknown };
    problems.push(`logged: ${message}${err === undefined ? "" : `: ${describeError(err)}`} ${JSON.stringify(fields)}`);
  };
  const log: Logger = { ...SILENT, error: complain };
  const files = createMemoryFiles({ now: () => timeFromMilliseconds(clock.wallClock()) });
  await fill(files, disk);
  const paths = createLayout(files, `/${STATE}`);
  await paths.prepare();
  // What a program was told is here without the gateway.
  isGone = [...promises.files.keys()].some((name) => isPromised(promises, name));
  const engine = await run(
    startEngine({
      runtime: { ...clock, files },
      client,
      log,
      paths,
      database: rows,
      syncRows: async () => {},
      settings: {
        owner: { uid: 0, gid: 0 },
        owners: "mine",
        umask: 0o022,
        cacheLimit: 2 ** 30,
        durability: "local",
        readOnly: false,
        hostName: "here",
        boot: "the boot after the cut",
        debounceMs: 1000,
        maximumAgeMs: 10_000,
        pollMs: 1000,
        concurrency: 8,
      },
      workspace: "workspace",
      scopes: undefined,
    }),
  );
  const machine = { clock, engine, run };
  const { shown, edited } = await promisesKept(machine, promises, problems, (isThere) => {
    isGone = !isThere;
  });
  await comesToRest(machine, problems);
  const calls = createKernel(engine.fileSystem, clock, createKernelMemory(clock));
  const mount = await run(treeOf(calls, { withContent: true }));
  const there = await run(gatewayTree(client, root));
  const parked = await run(parkedPaths(engine));
  const withoutParked = (tree: ReadonlyMap<string, Line>) => new Map([...tree].filter(([path]) => !parked.has(path)));
  problems.push(
    ...differences(withoutParked(mount), withoutParked(there), ["the mount", "the gateway"]).filter(
      (line) => !line.includes(": mtime is ") && !line.includes(": links is "),
    ),
  );
  for (const [name, { content }] of before) {
    const now = there.get(name)?.content;
    if (now === undefined || now === content || whole.has(now) || edited.has(now) || /\.db/.test(name)) continue;
    problems.push(`${name}: the head became ${now}, which no program ever left`);
  }
  for (const name of there.keys()) if (/\(conflict/.test(name)) problems.push(`${name}: nobody else was there`);
  // What the gateway got before the power went may have come in over what was shown, which is a version before it.
  const isVersion = store.prepare(
    "SELECT 1 FROM version v JOIN node n ON n.id = v.node WHERE v.hash = ? AND NOT n.deleted AND instr(n.name, ?) = 1",
  );
  for (const [name, content] of shown) {
    const stem = name.split(".")[0] ?? "";
    const isKept = [...mount].some(([path, line]) => line.content === content && path.startsWith(stem));
    if (!isKept && isVersion.get(content, stem) === undefined)
      problems.push(`${name}: ${content} was shown after the start, and is gone`);
  }
  await run(engine.stop());
  store.close();
  return problems;
}

/** Without an answer yet, a name may have gone back to what the gateway has. */
function isPromised({ files, prefixes }: Promises, name: string): boolean {
  return files.get(name)?.contents?.size === 1 || prefixes.has(name);
}

/**
 * Every promise, before anything is sent. Then programs go on with some of the files, offline: whatever
 * the gateway got before, it was this mount's, and no conflict. Resolves to what files with a promise
 * have, and the contents that were made.
 */
async function promisesKept(
  { clock, engine, run }: Machine,
  promises: Promises,
  problems: string[],
  setGateway: (isThere: boolean) => void,
) {
  const calls = createKernel(engine.fileSystem, clock, createKernelMemory(clock));
  const names = await run(calls.list(""));
  const contents = new Map<string, Buffer>();
  const isHere = (name: string) => !name.startsWith("remote-") && (isPromised(promises, name) || /\.db/.test(name));
  const look = async (isMeant: (name: string) => boolean) => {
    for (const name of names.filter(isMeant)) {
      contents.set(
        name,
        await run(readFile(calls, name)).catch((error: unknown) => {
          problems.push(`${name}: cannot be read: ${describeError(error)}`);
          return Buffer.alloc(0);
        }),
      );
    }
  };
  await look(isHere);
  const edited = new Map<string, string>();
  for (const [name, content] of contents) {
    if (/\.db/.test(name) || edited.size > contents.size / 2) continue;
    edited.set(name, await run(goOn(calls, name, content)));
  }
  // From here on it is there for good.
  setGateway(true);
  await look((name) => !isHere(name));
  const shown = new Map<string, string>();
  for (const [name, { contents: allowed }] of promises.files) {
    const content = contents.get(name);
    const hash = content === undefined ? undefined : hashOf(content);
    if (allowed === null && content !== undefined) problems.push(`${name}: is there again`);
    if (allowed === null || allowed === undefined) continue;
    if (hash === undefined) problems.push(`${name}: is not there`);
    else if (!allowed.has(hash)) problems.push(`${name}: has ${hash} (${content?.length} bytes), not ${[...allowed]}`);
    else shown.set(name, hash);
  }
  for (const [name, { size, hash }] of promises.prefixes) {
    const content = contents.get(name);
    if (content === undefined || hashOf(content.subarray(0, size)) !== hash) {
      problems.push(`${name}: does not begin with the ${size} bytes that were synced (has ${content?.length})`);
    }
  }
  for (const [name, rows] of promises.rows) problems.push(...rowsKept(name, rows, contents));
  for (const [name, hash] of edited) if (shown.has(name)) shown.set(name, hash);
  return { shown, edited: new Set(edited.values()) };
}

/** A program adds to the file. Resolves to the hash of what is in it then. */
async function goOn(calls: Calls, name: string, content: Buffer): Promise<string> {
  const more = Buffer.from(`after ${content.length} bytes`);
  const fd = await calls.open(name, { write: true });
  await calls.write(fd, content.length, more);
  await calls.close(fd);
  return hashOf(Buffer.concat([content, more]));
}

function rowsKept(name: string, expected: number, contents: ReadonlyMap<string, Buffer>): string[] {
  const folder = mkdtempSync(join(tmpdir(), "wsfs-test-power-"));
  try {
    for (const each of [name, `${name}-journal`, `${name}-wal`]) {
      const content = contents.get(each);
      if (content !== undefined) writeFileSync(join(folder, each), content);
    }
    const database = openSqlite(join(folder, name));
    try {
      database.pragma("synchronous = OFF");
      const state = database.pragma("integrity_check", { simple: true });
      if (state !== "ok") return [`${name}: ${state}`];
      const count = Number(database.prepare("SELECT count(*) FROM row").pluck().get());
      return count < expected ? [`${name}: has ${count} rows of ${expected} that were committed`] : [];
    } finally {
      database.close();
    }
  } catch (error) {
    return [`${name}: ${describeError(error)}`];
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function comesToRest({ clock, engine, run }: Machine, problems: string[]): Promise<void> {
  const limit = new AbortController();
  const timer = clock.setTimer(DRAIN_MS, () => limit.abort());
  const { left } = await run(engine.drain({ settle: true, signal: limit.signal }));
  timer.cancel();
  for (const line of left) if (!PARKED.test(line)) problems.push(`not drained: ${line}`);
  await clock.advance(5_000);
}

function runner(clock: VirtualClock) {
  return async <T>(work: Promise<T>): Promise<T> => {
    let isDone = false;
    const done = () => {
      isDone = true;
    };
    work.then(done, done);
    await clock.settle();
    for (let steps = 0; !isDone; steps += 1) {
      const next = clock.nextTimer();
      if (next === undefined || steps > 1_000_000) throw new Error("hangs");
      await clock.advance(Math.max(0, minus(next, clock.elapsed())));
    }
    return await work;
  };
}

/** The database as SQLite recovers it; the copy it is served from is in memory. */
function openRows(disk: CutDisk, problems: string[]) {
  const folder = mkdtempSync(join(tmpdir(), "wsfs-test-power-"));
  try {
    for (const suffix of ["", "-wal", "-journal"]) {
      const file = disk.get(`${STATE}/metadata.db${suffix}`);
      if (file != null) writeFileSync(join(folder, `metadata.db${suffix}`), file.read());
    }
    const database = openDatabase(join(folder, "metadata.db"));
    const state = database.pragma("integrity_check", { simple: true });
    if (state !== "ok") problems.push(`the rows: ${state}`);
    database.pragma("synchronous = OFF");
    // A log cannot be beside a database in memory.
    database.pragma("journal_mode = DELETE");
    const copy = openSqlite(database.serialize());
    copy.pragma("foreign_keys = ON");
    database.close();
    return copy;
  } catch (error) {
    problems.push(`the rows: ${describeError(error)}`);
    return undefined;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function fill(files: ReturnType<typeof createMemoryFiles>, disk: CutDisk): Promise<void> {
  for (const [path, file] of disk) {
    // The reserve is big, and nobody reads it.
    if (path.includes("metadata.db") || /\.log/.test(path) || path === `${STATE}/reserve`) continue;
    if (file === null) {
      await files.makeFolder(`/${path}`);
      continue;
    }
    await files.makeFolder(`/${dirname(path)}`);
    const handle = await files.open(`/${path}`, "w+");
    const bytes = file.read();
    if (bytes.length > 0) await handle.write(bytes, 0);
    await handle.setTimes(timeFromNanoseconds(file.mtime));
    await handle.close();
  }
}

export const contentHash = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

async function parkedPaths(engine: StartedEngine): Promise<Set<string>> {
  const paths = new Set<string>();
  for await (const items of engine.queue(1000)) {
    for (const { state, path } of items) if (state === "parked") paths.add(path.slice(1));
  }
  return paths;
}
