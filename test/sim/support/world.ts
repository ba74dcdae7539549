/**
 * All parts of one history: the clock, one gateway, the mounts, and another client. Events are logged line by line; the
 * same seed gives the same lines.
 */
import type { Client } from "../../../src/client/client.ts";
import { type Gateway as Connected, connect } from "../../../src/client/connect.ts";
import { createClient } from "../../../src/client/create-client.ts";
import { staticToken } from "../../../src/client/credentials.ts";
import type { Features } from "../../../src/contract/features.ts";
import type { HttpRequest } from "../../../src/contract/http.ts";
import { SCOPES, type Scope } from "../../../src/contract/scopes.ts";
import { type AccountStore, accountsInMemory } from "../../../src/gateway/accounts/index.ts";
import { createGateway, type Gateway } from "../../../src/gateway/core.ts";
import type { GatewayAnswer } from "../../../src/gateway/exchange.ts";
import { millisecondsOf, minus, plus } from "../../../src/lib/clocks.ts";
import { describeError, type Logger, SILENT } from "../../../src/lib/log.ts";
import { type Connection, openSqlite } from "../../../src/lib/sqlite/index.ts";
import { ISSUER } from "../../support/account-token.ts";
import { createMemoryBlobs } from "../../support/memory-blobs.ts";
import { createVirtualClock, seededRandom, type VirtualClock } from "../../support/virtual-clock.ts";
import { createKeptRows } from "./kept-rows.ts";
import { createMount, type Mount, type MountOptions, type Sabotage, type Settings } from "./mount.ts";
import { count, type Tally } from "./tally.ts";
import { createSimTransport, type Fault as TransportFault } from "./transport.ts";

/** What must not happen, happened. */
export class Fault extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "Fault";
  }
}

export interface World {
  readonly clock: VirtualClock;
  readonly mounts: readonly Mount[];
  /** The gateway's own rows. */
  readonly store: Connection;
  readonly accounts: AccountStore;
  /** Reaches the gateway at once and always. */
  readonly outside: Client;
  /** As commands do that work for a mount; undefined: for none. */
  connectAs(mount: string | undefined): Connected;
  readonly workspace: { readonly id: string; readonly root: string };
  /** What happened, each line with its time. */
  readonly lines: readonly string[];
  note(line: string): void;
  fault(what: string): void;
  /** Throws the first fault that was told of. */
  check(): void;
  /** Lets time go by until the work is done. A Fault when that takes longer than `limitMs` of it. */
  run<T>(work: Promise<T>, limitMs?: number): Promise<T>;
  setLag(lag: { readonly path: number; readonly journal: number; readonly id: number }): void;
  /** Bytes the workspace may hold; undefined: as many as it likes. */
  setQuota(bytes: number | undefined): void;
  restartGateway(): void;
  /** Position of the latest change at the gateway. */
  position(): number;
  /** What it is made of is used for the next. */
  end(): void;
}

export interface WorldOptions {
  readonly seed: number;
  readonly mounts: readonly string[];
  readonly settings?: Partial<Settings>;
  readonly sabotage?: Sabotage | undefined;
  /** What the gateway is taken to be able to do, where not all. */
  readonly features?: Features | undefined;
  readonly faults?: readonly TransportFault[] | undefined;
  /** Streams of trees are interrupted now and then. */
  readonly cutsTrees?: boolean;
  /** False: the kernel is given no file. By default one of two mounts has it; see mount.ts. */
  readonly isPassing?: false | undefined;
  /** How long after each other the machines of the mounts were started. */
  readonly apartMs?: number;
  /** How long a token lives; absent: so short that it expires in most histories. */
  readonly tokenSeconds?: number;
  /** The mounts are not started yet. */
  readonly isDown?: boolean;
  /** See mount.ts. */
  readonly onStep?: (mount: Mount, label: string) => void;
  readonly tally?: Tally | undefined;
  readonly engine?: MountOptions["engine"];
  readonly onAnswer?: (mount: Mount, request: HttpRequest, answer: GatewayAnswer) => void;
  /** Right after the gateway carried out a request of anybody. */
  readonly onHandled?: (() => void) | undefined;
}

/** Of the gateway's tokens. */
export const SIGNING_KEY = Buffer.alloc(32, 7);

const LIMIT_MS = 15 * 60_000;
const WORKSPACE_AGE_MS = 60_000;
const TOKEN_SECONDS = 90;

/** Stores of gateways. */
const STORES = createKeptRows(() => {
  const database = openSqlite(":memory:");
  const clock = createVirtualClock();
  createGateway({ clock, database, blobs: createMemoryBlobs(), signingKey: Buffer.alloc(32), log: SILENT });
  return database;
});

export async function createWorld(options: WorldOptions): Promise<World> {
  const { seed } = options;
  const clock = createVirtualClock(seed);
  const store = STORES.take();
  const blobs = createMemoryBlobs();
  const signingKey = SIGNING_KEY;
  const lag = { pathLagMs: 0, journalLagMs: 0, idLagMs: 0 };
  const lines: string[] = [];
  const faults: string[] = [];
  const note = (line: string) => void lines.push(`${(millisecondsOf(clock.elapsed()) / 1000).toFixed(3)} ${line}`);
  const fault = (what: string) => {
    note(`FAULT ${what}`);
    faults.push(what);
  };
  const log: Logger = {
    ...SILENT,
    error(fields, message) {
      const { err } = fields as { err?: unknown };
      fault(`the gateway: ${message}: ${JSON.stringify({ ...fields, err: undefined })} ${describeError(err)}`);
    },
  };
  const accounts = accountsInMemory(clock);
  const needs = { clock, database: store, accounts, issuer: () => ISSUER, blobs, signingKey };
  const up = () => createGateway({ ...needs, options: lag, log });
  let gateway: Gateway = up();
  const row = gateway.ensureWorkspace("workspace");
  const tokenFor = (ttlSeconds: number, without?: Scope) =>
    gateway.issueToken({ scopes: SCOPES.filter((scope) => scope !== without), ttlSeconds, workspace: row.id });

  const mounts = options.mounts.map((name, index) =>
    createMount({
      name,
      seed: seed + index,
      startedMs: index * (options.apartMs ?? 0),
      ...(options.isPassing === undefined ? {} : { isPassing: options.isPassing }),
      clock,
      gateway: () => gateway,
      tokenWithout: (scope) => tokenFor(options.tokenSeconds ?? TOKEN_SECONDS, scope),
      workspace: "workspace",
      ...(options.settings === undefined ? {} : { settings: options.settings }),
      sabotage: options.sabotage,
      features: options.features,
      ...(options.cutsTrees === undefined ? {} : { cutsTrees: options.cutsTrees }),
      ...(options.faults === undefined ? {} : { faults: options.faults }),
      onStep: options.onStep,
      ...(options.engine === undefined ? {} : { engine: options.engine }),
      onAnswer(mount, request, answer) {
        const { status } = answer;
        if (options.tally !== undefined && status === 401) count(options.tally.faults, "expired");
        if (options.tally !== undefined && status === 403) count(options.tally.faults, "withdrawn");
        options.onHandled?.();
        options.onAnswer?.(mount, request, answer);
      },
      onRequest(met) {
        if (options.tally === undefined) return;
        options.tally.requests += 1;
        if (met !== undefined) count(options.tally.faults, met);
      },
      note,
      fault,
    }),
  );
  const transport = createSimTransport({
    clock,
    gateway: () => gateway,
    weather: { isOffline: false, latencyMs: 0, faultShare: 0 },
    random: seededRandom(seed),
    isAlive: () => true,
    onAnswer: () => options.onHandled?.(),
    note: () => {},
  });
  const credentials = staticToken(tokenFor(30 * 86400));
  const outside = createClient({ transport, credentials, now: clock.wallClock });

  const world: World = {
    clock,
    mounts,
    store,
    accounts,
    outside,
    connectAs(mount) {
      const through = options.sabotage?.connected ?? ((all: Connected) => all);
      const at = { baseUrl: "http://gateway", workspace: row.id, mount };
      return through(connect({ ...at, retries: false, clock, credentials, transport }), mount);
    },
    workspace: row,
    lines,
    note,
    fault,
    check() {
      const [first] = faults;
      if (first !== undefined) throw new Fault(first);
    },
    async run(work, limitMs = LIMIT_MS) {
      let isDone = false;
      const done = () => {
        isDone = true;
      };
      work.then(done, done);
      const end = plus(clock.elapsed(), limitMs);
      await clock.settle();
      while (!isDone) {
        const next = clock.nextTimer();
        if (next === undefined) throw new Fault("hangs: nothing is under way that could end it");
        if (next > end) throw new Fault(`hangs: not done after ${limitMs / 1000} s`);
        await clock.advance(Math.max(0, minus(next, clock.elapsed())));
      }
      return await work;
    },
    setLag({ path, journal, id }) {
      Object.assign(lag, { pathLagMs: path, journalLagMs: journal, idLagMs: id });
      gateway.setOptions(lag);
    },
    setQuota(bytes) {
      gateway.setOptions({ quota: bytes === undefined ? {} : { all: bytes } });
    },
    restartGateway() {
      // As its connections do.
      gateway.endStreams();
      gateway = up();
    },
    position: () => Number(store.prepare("SELECT max(position) FROM change").pluck().get() ?? 0),
    end() {
      for (const mount of mounts) mount.end();
      store.close();
    },
  };
  // The workspace is older than any lag.
  await clock.advance(WORKSPACE_AGE_MS);
  if (options.isDown !== true) for (const mount of mounts) await world.run(mount.start());
  return world;
}
