/** A daemon's life as far as it needs no mount. */
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { openHandleFile } from "../../src/daemon/handle-file.ts";
import { identifyProcess } from "../../src/daemon/processes.ts";
import { writeRecord } from "../../src/daemon/runtime-folder.ts";
import type { DaemonSettings } from "../../src/daemon/settings.ts";
import { type DaemonOptions, runDaemon } from "../../src/daemon/start.ts";
import { STATE_CLAIM } from "../../src/daemon/state-folder.ts";
import type { startEngine } from "../../src/engine/start/index.ts";
import { openControl, socketPair } from "../../src/fuse/native.ts";
import { claimFolder } from "../../src/lib/claim-folder.ts";
import { SILENT } from "../../src/lib/log.ts";
import { kernelNodeId } from "../../src/metadata/ids.ts";
import { CONNECTION } from "../support/connection.ts";
import { patiently } from "../support/patiently.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { SETTINGS } from "./settings.ts";

const FILE = {
  request: 40,
  kernelNodeId: kernelNodeId(7),
  kind: "file",
  write: true,
  append: false,
  backing: undefined,
} as const;

function settingsIn(folder: string, runtimeFolder: string): DaemonSettings {
  return {
    ...SETTINGS,
    mountpoint: join(folder, "mount"),
    baseUrl: "http://127.0.0.1:9",
    tokenFile: join(folder, "token"),
    stateHome: folder,
    runtimeFolder,
    cacheSize: 1e9,
    passthrough: false,
  };
}

/** A daemon in the place of one that died. `lines`: what its supervisor hears. */
async function takeOver(settings: DaemonSettings, startEngine: DaemonOptions["startEngine"]) {
  const [own, theirs] = socketPair("seqpacket");
  const lines: string[] = [];
  const supervisor = openControl(
    theirs,
    (line) => lines.push(line),
    () => {},
  );
  onTestFinished(() => supervisor.close());
  const exitCode = await runDaemon({
    settings,
    controlDescriptor: own,
    startEngine,
    restarts: { count: 1, cause: "", wasOwnFault: false },
    reload: undefined,
    noResend: false,
    log: { ...SILENT, openFile() {}, toFileOnly() {} },
    umask: 0o022,
    signaled: new AbortController().signal,
  });
  return { exitCode, lines };
}

it("a daemon that takes over and fails before it serves leaves what programs have open to the one after it", async () => {
  const folder = await temporaryFolder();
  const [stateDir, runtimeFolder] = ["state", "run"].map((name) => join(folder, name)) as [string, string];
  mkdirSync(runtimeFolder, { mode: 0o700 });
  claimFolder(stateDir, STATE_CLAIM);
  const settings = settingsIn(folder, runtimeFolder);
  const { mountId, mountpoint, baseUrl } = settings;
  const self = identifyProcess(process.pid);
  if (self === undefined) throw new Error("no such process");
  const workspace = { id: "i", name: "w" };
  const served = { connection: 1, mountId, mountpoint, baseUrl, workspace, stateDir, daemon: self, supervisor: self };
  writeRecord(runtimeFolder, served);
  const path = join(stateDir, "handles");
  const before = openHandleFile(path, mountId, undefined, SILENT);
  before?.agreed(CONNECTION);
  const id = before?.handleTable.add(FILE);
  before?.close();

  const { exitCode, lines } = await takeOver(settings, async ({ handleTable, mount }) => {
    const open = (mount?.resumed?.handles ?? []).map((handle) => handle.id);
    expect(open).toEqual([id]);
    // What is open is closed at the end.
    const stop = async () => {
      for (const handle of open) handleTable?.remove(handle);
    };
    const condition = () => {
      throw new Error("no space left on the disk");
    };
    return { stop, condition } as unknown as Awaited<ReturnType<typeof startEngine>>;
  });
  expect(exitCode).toBe(1);
  const said = () => lines.filter((line) => line !== "heartbeat");
  await vi.waitFor(() => expect(said()).toEqual(["failed 1 no space left on the disk"]), patiently);
  const left = openHandleFile(path, mountId, { wasOwnFault: false }, SILENT)?.handles;
  expect(left).toEqual([{ ...FILE, id }]);
});

it("a daemon that takes over makes no state dir where that of its mount was", async () => {
  const folder = await temporaryFolder();
  const stateDir = join(folder, "state");
  const settings = { ...settingsIn(folder, join(folder, "run")), stateDir };
  const { exitCode, lines } = await takeOver(settings, () => Promise.reject(new Error("there is nothing to start")));
  expect(exitCode).toBe(1);
  const why = "failed 1 the state dir has no record of this mount, so no daemon can take it over";
  await vi.waitFor(() => expect(lines).toContain(why), patiently);
  expect(existsSync(stateDir)).toBe(false);
});
