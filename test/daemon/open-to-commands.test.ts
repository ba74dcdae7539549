/** The record of a mount names who looks after it now, whenever that changes; a mount that stays goes on as before. */
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { postReload, postRetry, postUnmount } from "../../src/daemon/control-client.ts";
import { openToCommands, type ServedParts } from "../../src/daemon/open-to-commands.ts";
import { identifyProcess, type ProcessIdentity } from "../../src/daemon/processes.ts";
import { daemonSocket, isRecorded, type MountRecord, readRecord, socketPath } from "../../src/daemon/runtime-folder.ts";
import type { DaemonSettings } from "../../src/daemon/settings.ts";
import type { SupervisorLink } from "../../src/daemon/supervisor-link.ts";
import { SILENT } from "../../src/lib/log.ts";

let folder: string;
const closers: (() => unknown)[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "wsfs-commands-"));
});
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
  rmSync(folder, { recursive: true });
});

const named = (pid: number): ProcessIdentity => ({ pid, startTime: "1" });

const ID = "7f0f8ab5-9d4a-4b93-8f35-0d5b0ff0a7a5";
const daemon = self();

function self(): ProcessIdentity {
  const identity = identifyProcess(process.pid);
  if (identity === undefined) throw new Error("no process");
  return identity;
}

/** A mount looked after by `identity()`; `parts`: what else there is of it. */
function open(identity: () => ProcessIdentity, link: Partial<SupervisorLink>, parts: object): Promise<void> {
  const served = {
    engine: {},
    passthrough: {},
    mountOver: new Promise(() => {}),
    since: 0,
    restarts: undefined,
    serving: { session: { ended: new Promise(() => {}) }, handOver: {} },
    overseer: {
      get identity() {
        return identity();
      },
      replace() {},
      onChange() {},
    },
    ...parts,
  } as unknown as ServedParts;
  const record: MountRecord = {
    ...{ connection: 1, mountpoint: "/m", stateDir: "/s", baseUrl: "http://g", workspace: { id: "i", name: "n" } },
    daemon,
    supervisor: identity(),
  };
  const settings: DaemonSettings = {
    ...{ mountId: ID, mountpoint: "/m", baseUrl: "http://g", workspace: "n", tokenFile: "/t" },
    ...{ stateDir: "/s", stateHome: "/", runtimeFolder: folder, cacheSize: 0, patienceMs: 0, shortenWaits: 1 },
    ...{ readOnly: false, crashes: 5, passthrough: true, durability: "local", logLevel: "info", foreground: false },
  };
  return openToCommands(settings, record, served, SILENT, link as SupervisorLink, closers);
}

it("a supervisor that is replaced while the socket is being opened, and one later", async () => {
  let identity = named(1);
  let tell: (identity: ProcessIdentity) => void = () => {};
  const replace = (next: ProcessIdentity) => {
    identity = next;
    tell(next);
  };
  const overseer = {
    get identity() {
      return identity;
    },
    replace() {},
    onChange(then: typeof tell) {
      tell = then;
    },
  };
  const opening = open(() => identity, {}, { overseer });
  // By now the socket is asked for, and is not there yet.
  replace(named(2));
  await opening;
  expect(readRecord(folder, daemon.pid)?.supervisor).toEqual(named(2));
  replace(named(3));
  expect(readRecord(folder, daemon.pid)?.supervisor).toEqual(named(3));
});

it.each<[string, () => Promise<never> | Promise<{ busy: [] }>]>([
  ["fails", () => Promise.reject(new Error("no supervisor"))],
  ["finds it busy", () => Promise.resolve({ busy: [] })],
])(
  "goes on where the unmounting %s: what others change is told to who watches, and it may give way",
  async (_what, unmount) => {
    let pauses = 0;
    const replays = {
      pause() {
        pauses += 1;
        return () => {
          pauses -= 1;
        };
      },
    };
    const given: string[] = [];
    const handOver = { isUnderWay: false, prepare: async ({ id }: { id: string }) => void given.push(id), begin() {} };
    const pausedThen: number[] = [];
    const link = {
      unmount: () => {
        pausedThen.push(pauses);
        return unmount();
      },
    } as unknown as Partial<SupervisorLink>;
    const serving = { session: { ended: new Promise(() => {}) }, handOver };
    await open(() => named(1), link, { engine: { replays }, serving });
    const socket = daemonSocket(folder, daemon.pid);
    await postUnmount(socket, 10_000).catch(() => {});
    expect([pausedThen, pauses]).toEqual([[1], 0]);
    await postReload(socket, { id: ID, changes: {}, program: ["node"] });
    expect(given).toEqual([ID]);
  },
);

it("is found again where its runtime folder was removed, and told of who looks after it by then", async () => {
  let tell: (identity: ProcessIdentity) => void = () => {};
  const overseer = {
    identity: named(1),
    replace() {},
    onChange(then: typeof tell) {
      tell = then;
    },
  };
  const engine = { retry: async () => ({ retried: 1, unknown: [] }) };
  await open(() => named(1), {}, { overseer, engine });
  rmSync(folder, { recursive: true });
  tell(named(2));
  await vi.waitFor(() => expect(readRecord(folder, daemon.pid)?.supervisor).toEqual(named(2)), { timeout: 10_000 });
  expect(statSync(folder).mode & 0o777).toBe(0o700);
  expect(await postRetry(daemonSocket(folder, daemon.pid))).toMatchObject({ retried: 1 });
  rmSync(socketPath(folder, daemon.pid));
  await vi.waitFor(() => expect(isRecorded(folder, daemon.pid)).toBe(true), { timeout: 10_000 });
  expect(await postRetry(daemonSocket(folder, daemon.pid))).toMatchObject({ retried: 1 });
});
