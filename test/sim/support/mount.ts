/**
 * One mount without a kernel module: an engine with its files and rows in memory, and the process around it, which can
 * be killed between any two microtasks. Work of a dead process has no effect: its timers and answers never come, its
 * files are closed, and the next one does not start from its rows.
 */
import type { Client } from "../../../src/client/client.ts";
import type { Gateway as Connected } from "../../../src/client/connect.ts";
import { createClient } from "../../../src/client/create-client.ts";
import type { Credentials } from "../../../src/client/credentials.ts";
import { OWN_PROFILE } from "../../../src/client/profile.ts";
import { createLayout } from "../../../src/content/layout.ts";
import type { Features } from "../../../src/contract/features.ts";
import type { HttpRequest } from "../../../src/contract/http.ts";
import type { FileSystem, KernelCache } from "../../../src/engine/api/index.ts";
import { type EngineOptions, startEngine } from "../../../src/engine/start/index.ts";
import type { Gateway } from "../../../src/gateway/core.ts";
import type { GatewayAnswer } from "../../../src/gateway/exchange.ts";
import { plus, wallTime } from "../../../src/lib/clocks.ts";
import { describeError, type Logger } from "../../../src/lib/log.ts";
import type { Clock, Runtime } from "../../../src/lib/runtime.ts";
import { timeFromMilliseconds } from "../../../src/lib/time.ts";
import type { Connection } from "../../../src/metadata/database.ts";
import { openNoRows } from "../../support/in-memory.ts";
import { createMemoryFiles, type MemoryFiles } from "../../support/memory-files.ts";
import { createMemoryPassthrough } from "../../support/memory-passthrough.ts";
import { seededRandom } from "../../support/virtual-clock.ts";
import { type Heard, hearLists } from "./heard.ts";
import { createKeptRows, type Rows } from "./kept-rows.ts";
import { createCaller, createKernel, type Kernel } from "./kernel.ts";
import { createKernelMemory } from "./kernel-memory.ts";
import { steppingFiles, steppingRows } from "./stepping.ts";
import {
  createSimTransport,
  type Fault,
  type SimTransportOptions,
  type Weather,
  type Withdrawable,
} from "./transport.ts";

export type StartedEngine = Awaited<ReturnType<typeof startEngine>>;

export type Settings = EngineOptions["settings"];

/** An engine broken on purpose, to see that it is noticed. */
export interface Sabotage {
  /** Changes requests on their way. */
  readonly request?: (request: HttpRequest) => HttpRequest;
  /** Breaks what each start of the engine is given. */
  readonly engine?: EngineHook;
  /** Breaks a part of the engine after its start. */
  readonly started?: (engine: StartedEngine) => void;
  /** A crash takes back what the last system call committed. */
  readonly losesLastCall?: boolean;
  /** What the kernel asks goes through it. */
  readonly fileSystem?: (fileSystem: FileSystem) => FileSystem;
  /** What the kernel is told goes through it. */
  readonly kernelCache?: (cache: KernelCache) => KernelCache;
  /** What commands that work for a mount ask goes through it. */
  readonly connected?: (gateway: Connected, mount: string | undefined) => Connected;
  /** Changes the rows a crash leaves. */
  readonly crash?: (rows: Connection) => void;
  /** What goes wrong with a request, instead of what the weather says. */
  readonly choose?: (request: HttpRequest) => Fault | "none" | undefined;
}

/** What an engine is started with besides; called at each start. */
export type EngineHook = (files: MemoryFiles, rows: Connection, own: Own) => Partial<EngineOptions>;

export interface MountOptions {
  readonly name: string;
  /** Of chance. */
  readonly seed: number;
  /** Whether whole files are passthrough; by default with even seeds. */
  readonly isPassing?: boolean;
  /** How long before the clock began its machine was started: what it does every so often, it does at times of its own. */
  readonly startedMs?: number;
  readonly clock: Clock;
  readonly gateway: () => Gateway;
  /** A new one, good for a while, without the scope. */
  readonly tokenWithout: (scope: Withdrawable | undefined) => string;
  readonly workspace: string;
  readonly settings?: Partial<Settings>;
  readonly sabotage?: Sabotage | undefined;
  /** What the gateway is taken to be able to do, where not all. */
  readonly features?: Features | undefined;
  readonly faults?: readonly Fault[];
  /** Streams of trees are interrupted now and then. */
  readonly cutsTrees?: boolean;
  /** Right after anything that outlives the process, and at the fault points of the engine: it may be killed there. */
  readonly onStep?: ((mount: Mount, label: string) => void) | undefined;
  readonly engine?: EngineHook;
  readonly onAnswer: (mount: Mount, request: HttpRequest, answer: GatewayAnswer) => void;
  readonly onRequest?: SimTransportOptions["onRequest"];
  readonly note: (line: string) => void;
  /** Something that must not happen did. */
  readonly fault: (what: string) => void;
}

/** What an engine is started with anyway. */
export interface Own {
  readonly settings: Settings;
  readonly runtime: Runtime;
  readonly client: Client;
  readonly copyRows: () => Rows;
}

/** What is there while the process lives. */
export interface Process {
  readonly engine: StartedEngine;
  readonly kernel: Kernel;
  readonly database: Connection;
  readonly files: MemoryFiles;
  readonly runtime: Runtime;
  readonly heard: Heard;
  /** As the daemon does when another token is in use. */
  tokenChanged(): void;
  /** What the kernel keeps for long although it does not hold; one line for each. */
  stale(): Promise<string[]>;
}

export interface Mount {
  readonly name: string;
  readonly weather: Weather;
  /** Read anew whenever they count. */
  readonly settings: Settings;
  /** Of its wall clock, against the gateway's; milliseconds. */
  skewMs: number;
  /** Undefined while it is down. */
  readonly process: Process | undefined;
  start(): Promise<void>;
  /** As umount. */
  stop(): Promise<void>;
  /** As kill -9, at this very moment. `change`: changes the rows that it leaves. */
  crash(change?: (rows: Connection) => void): void;
  /** While it is down: its state folder is emptied. */
  wipe(): void;
  /** The rows as they are committed now. */
  copyRows(): Rows;
  /** While it is down: others take the place of its rows, or none; `why`: it is said that they do. */
  replaceRows(rows: Rows | undefined, why?: string): void;
  /** While it is down: its files, for who damages them. */
  files(): MemoryFiles;
  /** Nobody needs it any more, nor anything of it. */
  end(): void;
}

/** Of all worlds: their statements take longer to prepare than a short history to play. */
const DATABASES = createKeptRows(openNoRows);
/** Of the paths of its files. */
export const STATE = "/state";
/** A change is sent after this much quiet, and after this long at the latest. */
export const DEBOUNCE_MS = 500;
export const MAXIMUM_AGE_MS = 3_000;
const REFUSED = "refused by the gateway, kept here";

export function createMount(options: MountOptions): Mount {
  const { name, clock, seed } = options;
  const wallClock = () => wallTime(clock.wallClock() + mount.skewMs);
  const now = () => timeFromMilliseconds(wallClock());
  const { startedMs = 0 } = options;
  const elapsed = () => plus(clock.elapsed(), startedMs);
  const weather: Weather = { isOffline: false, latencyMs: 0, faultShare: 0 };
  const settings: Settings = {
    owner: { uid: 1000, gid: 1000 },
    owners: "mine",
    umask: 0o022,
    cacheLimit: 1 << 20,
    durability: "local",
    readOnly: false,
    hostName: name,
    boot: "boot",
    debounceMs: DEBOUNCE_MS,
    maximumAgeMs: MAXIMUM_AGE_MS,
    pollMs: 1_000,
    concurrency: 4,
    ...options.settings,
  };
  let files = createMemoryFiles({ now });
  let database: Connection | undefined;
  /** What it begins with when it is started again. */
  let left: Rows | undefined;
  let before: Rows | undefined;
  /** Of dead processes, which may still be at work on them. */
  const zombies: Connection[] = [];
  let current: Process | undefined;
  let starts = 0;
  let uuids = 0;

  const mount: Mount = {
    name,
    weather,
    settings,
    skewMs: 0,
    get process() {
      return current;
    },

    async start() {
      starts += 1;
      const started = starts;
      // A zombie of an earlier start asks here before it does anything to the world.
      const isAlive = () => starts === started;
      const random = seededRandom(seed * 31 + started);
      const step = (label: string) => {
        if (isAlive()) options.onStep?.(mount, label);
      };
      const runtime: Runtime = {
        wallClock,
        elapsed,
        uptime: () => clock.uptime() + startedMs,
        worked: clock.worked,
        setTimer: (milliseconds, callback) => clock.setTimer(milliseconds, () => isAlive() && callback()),
        soon: (callback) => clock.soon(() => isAlive() && callback()),
        random,
        uuid() {
          uuids += 1;
          return `${name}-${uuids}`;
        },
        step,
        files: steppingFiles(files, step),
      };
      const transport = createSimTransport({
        clock,
        gateway: options.gateway,
        weather,
        random: seededRandom(seed * 37 + started),
        isAlive,
        onAnswer(request, answer) {
          options.onAnswer(mount, request, answer);
          if (request.method !== "GET") step(`gateway: ${request.method} done`);
        },
        note: (line) => options.note(`${name} ${line}`),
        onRequest: options.onRequest,
        choose: options.sabotage?.choose,
        tamper: options.sabotage?.request,
        // One mount in three reads its names folder by folder.
        cutsTrees: options.cutsTrees,
        lacksTrees: Math.floor(seed / 3) % 3 === 0,
        ...(options.faults === undefined ? {} : { faults: options.faults }),
      });
      const log = createLog(name, isAlive, options);
      const { features } = options;
      const profile = features === undefined ? OWN_PROFILE : { ...OWN_PROFILE, features };
      const client = createClient({
        transport,
        credentials: credentialsOf(options.tokenWithout, weather),
        now: wallClock,
        elapsed,
        profile,
        mount: name,
        onRefusal: () => current?.engine.context.network.isThere(),
      });
      const paths = createLayout(runtime.files, STATE);
      await paths.prepare();
      database ??= DATABASES.take(left);
      const rows = database;
      const { isPassing = seed % 2 === 0 } = options;
      const passthrough = isPassing ? createMemoryPassthrough(files) : undefined;
      const memory = createKernelMemory(runtime);
      const { kernelCache = (cache: KernelCache) => cache } = options.sabotage ?? {};
      const heard = hearLists(client, clock.elapsed);
      const own = { settings, copyRows: mount.copyRows, runtime, client };
      const engine = await startEngine({
        runtime,
        kernelCache: kernelCache(memory.cache),
        client,
        log,
        paths,
        database: steppingRows(rows, step),
        syncRows: async () => {},
        settings,
        workspace: options.workspace,
        scopes: undefined,
        ...(passthrough === undefined ? {} : { passthrough }),
        ...options.engine?.(files, rows, own),
        ...options.sabotage?.engine?.(files, rows, own),
      });
      if (!isAlive()) return;
      options.sabotage?.started?.(engine);
      const fileSystem = options.sabotage?.fileSystem?.(engine.fileSystem) ?? engine.fileSystem;
      const keep = () => {
        if (options.sabotage?.losesLastCall === true) before = DATABASES.rowsOf(rows);
      };
      const kernel = whileAlive(createKernel(fileSystem, { elapsed }, memory, passthrough?.fileOf), isAlive, keep);
      const caller = createCaller();
      const stale = () => memory.stale({ rows, fileSystem, isLive: engine.status().live }, caller);
      const tokenChanged = () => engine.context.network.tokenChanged(undefined);
      current = { engine, kernel, database: rows, files, runtime, heard: heard(rows), tokenChanged, stale };
    },

    async stop() {
      const stopping = current;
      if (stopping === undefined) return;
      current = undefined;
      // stop() closes the rows: the next start goes on from what they are where it does.
      const close = stopping.database.close.bind(stopping.database);
      stopping.database.close = () => {
        left = DATABASES.rowsOf(stopping.database);
        database = undefined;
        return close();
      };
      await stopping.engine.stop();
      starts += 1;
    },

    copyRows() {
      if (database === undefined) throw new Error(`${name} has no rows`);
      return DATABASES.rowsOf(database);
    },

    replaceRows(rows, why) {
      if (database !== undefined) zombies.push(database);
      database = DATABASES.take(rows);
      if (why === undefined) return;
      database.prepare("INSERT OR REPLACE INTO setting VALUES ('restored', ?)").run(JSON.stringify({ why }));
    },

    files: () => files,

    wipe() {
      left = undefined;
      files = createMemoryFiles({ now });
    },

    crash(change) {
      starts += 1;
      current = undefined;
      if (database === undefined) return;
      // What was not committed is gone.
      if (database.inTransaction) database.exec("ROLLBACK");
      zombies.push(database);
      database = DATABASES.take(before ?? DATABASES.rowsOf(database));
      before = undefined;
      options.sabotage?.crash?.(database);
      change?.(database);
      const image = files.image();
      files.kill();
      files = createMemoryFiles({ now, image });
    },

    end() {
      starts += 1;
      current = undefined;
      for (const rows of zombies.splice(0)) rows.close();
      database?.close();
    },
  };
  return mount;
}

/** A refused token is followed by another; a right that is withdrawn, or given back, by one that says so. */
function credentialsOf(issue: MountOptions["tokenWithout"], weather: Weather): Credentials {
  let without = weather.withdrawn;
  let current = issue(without);
  const renewed = () => {
    without = weather.withdrawn;
    current = issue(without);
    return current;
  };
  return {
    token: async () => (without === weather.withdrawn ? current : renewed()),
    renew: async (rejected) => (rejected === current ? renewed() : current),
  };
}

/** What a dead process would have answered reaches no program. */
function whileAlive(kernel: Kernel, isAlive: () => boolean, onCall: () => void): Kernel {
  return new Proxy(kernel, {
    get(target, name: keyof Kernel) {
      const call = target[name] as (...args: unknown[]) => unknown;
      return (...args: unknown[]) => {
        onCall();
        const answer = call(...args);
        if (!(answer instanceof Promise)) return answer;
        return new Promise((resolve, reject) => {
          answer.then(
            (value) => isAlive() && resolve(value),
            (error: unknown) => isAlive() && reject(error),
          );
        });
      };
    },
  });
}

/** What an engine logs as an error is a fault; the rest is told when somebody looks. */
function createLog(name: string, isAlive: () => boolean, options: MountOptions): Logger {
  const note = (level: string) => (fields: object, message: string) => {
    if (!isAlive()) return;
    const { err } = fields as { err?: unknown };
    options.note(`${name} ${level}: ${message}${err === undefined ? "" : `: ${describeError(err)}`}`);
  };
  return {
    isLevelEnabled: () => true,
    debug: () => {},
    info: note("info"),
    warn: note("warn"),
    error(fields, message) {
      if (!isAlive()) return;
      // As told to by the weather: what is refused is kept, and sent again when somebody says so.
      if (message === REFUSED) return note("error")(fields, message);
      const { err } = fields as { err?: unknown };
      const stack = err instanceof Error ? err.stack : "";
      options.fault(`${name} logged an error: ${message}: ${describeError(err)}\n${stack}`);
    },
  };
}
