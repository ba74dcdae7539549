/** The record of a mount names who looks after it now, whenever that changes. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { openToCommands, type ServedParts } from "../../src/daemon/open-to-commands.ts";
import { identifyProcess, type ProcessIdentity } from "../../src/daemon/processes.ts";
import { type MountRecord, readRecord } from "../../src/daemon/runtime-folder.ts";
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

it("a supervisor that is replaced while the socket is being opened, and one later", async () => {
  const daemon = identifyProcess(process.pid);
  if (daemon === undefined) throw new Error("no process");
  let identity = named(1);
  let tell: (identity: ProcessIdentity) => void = () => {};
  const replace = (next: ProcessIdentity) => {
    identity = next;
    tell(next);
  };
  const parts = {
    engine: {},
    passthrough: {},
    mountOver: new Promise(() => {}),
    since: 0,
    restarts: undefined,
    overseer: {
      get identity() {
        return identity;
      },
      replace() {},
      onChange(then: typeof tell) {
        tell = then;
      },
    },
    serving: { session: { ended: new Promise(() => {}) }, handOver: {} },
  } as unknown as ServedParts;
  const record: MountRecord = {
    ...{ connection: 1, mountpoint: "/m", stateDir: "/s", baseUrl: "http://g", workspace: { id: "i", name: "n" } },
    daemon,
    supervisor: identity,
  };
  const settings = { runtimeFolder: folder } as DaemonSettings;
  const opening = openToCommands(settings, record, parts, SILENT, {} as SupervisorLink, closers);
  // By now the socket is asked for, and is not there yet.
  replace(named(2));
  await opening;
  expect(readRecord(folder, daemon.pid)?.supervisor).toEqual(named(2));
  replace(named(3));
  expect(readRecord(folder, daemon.pid)?.supervisor).toEqual(named(3));
});
