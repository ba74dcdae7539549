/** An engine at work on a disk of this machine, without a mount: what the write-back loop does can be measured alone. */
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { createClient } from "../../../src/client/create-client.ts";
import { staticToken } from "../../../src/client/credentials.ts";
import { createThreadTransport } from "../../../src/client/thread-transport.ts";
import { createDiskFiles } from "../../../src/content/disk-files.ts";
import { createHashWorkers } from "../../../src/content/hash-workers.ts";
import { createLayout } from "../../../src/content/layout.ts";
import * as systemCalls from "../../../src/content/system-calls.ts";
import { createRowSync } from "../../../src/daemon/row-sync.ts";
import { createRuntime } from "../../../src/daemon/runtime.ts";
import { startEngine } from "../../../src/engine/start/index.ts";
import { startCheckpoints } from "../../../src/lib/checkpoints.ts";
import { SILENT } from "../../../src/lib/log.ts";
import { systemClock } from "../../../src/lib/system-clock.ts";
import { checkpoint, openDatabase } from "../../../src/metadata/database.ts";

type StartedEngine = Awaited<ReturnType<typeof startEngine>>;

export interface EngineAlone {
  readonly engine: StartedEngine;
  stop(): Promise<void>;
}

/** As daemon/start.ts puts it together. `debounceMs`: until then nothing is sent by itself. */
export async function startAlone(
  gateway: { readonly baseUrl: string; readonly token: string; readonly workspace: string },
  stateDir: string,
  {
    connections,
    ...settings
  }: { readonly debounceMs: number; readonly concurrency: number; readonly connections: number },
): Promise<EngineAlone> {
  const hashWorkers = createHashWorkers();
  const runtime = createRuntime(createDiskFiles({ systemCalls, hashWorkers, elapsed: systemClock.elapsed }));
  const transport = createThreadTransport({
    baseUrl: gateway.baseUrl,
    connections,
    startThread: (workerData) =>
      new Worker(new URL("../../../src/client/http-thread.ts", import.meta.url), {
        workerData,
        resourceLimits: { maxYoungGenerationSizeMb: 4 },
      }),
  });
  const client = createClient({ transport, credentials: staticToken(gateway.token) });
  const paths = createLayout(runtime.files, stateDir);
  await paths.prepare();
  const databasePath = join(stateDir, "metadata.db");
  const rowSync = createRowSync(runtime.files, databasePath);
  const database = openDatabase(databasePath);
  const engine = await startEngine({
    runtime,
    client,
    log: SILENT,
    paths,
    database,
    syncRows: rowSync.sync,
    settings: {
      owner: { uid: 0, gid: 0 },
      owners: "mine",
      umask: 0o022,
      cacheLimit: 2 ** 40,
      durability: "local",
      readOnly: false,
      hostName: "bench",
      boot: "boot",
      pollMs: 1_000,
      maximumAgeMs: 10 * settings.debounceMs,
      ...settings,
    },
    workspace: gateway.workspace,
    scopes: undefined,
  });
  const worker = new Worker(new URL("../../../src/metadata/checkpoint-worker.ts", import.meta.url), {
    workerData: { path: databasePath },
  });
  const checkpoints = startCheckpoints({
    worker,
    databasePath,
    lookMs: 1_000,
    logBytes: 4 * 1024 * 1024,
    finish: () => checkpoint(database),
    log: SILENT,
  });
  return {
    engine,
    async stop() {
      await checkpoints.close();
      await engine.stop();
      await rowSync.close();
      await hashWorkers.close();
      await client.close();
    },
  };
}
