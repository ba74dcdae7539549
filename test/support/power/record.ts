/**
 * Records a real daemon at work: programs on its mount, a gateway in this process whose state after
 * each change is kept, and every change and sync of the daemon below its state dir.
 */
import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { SCOPES } from "../../../src/contract/scopes.ts";
import { createGateway } from "../../../src/gateway/core.ts";
import { startServer } from "../../../src/gateway/server.ts";
import { SILENT } from "../../../src/lib/log.ts";
import { openSqlite } from "../../../src/lib/sqlite/index.ts";
import { systemClock } from "../../../src/lib/system-clock.ts";
import { run } from "../child.ts";
import { createMemoryBlobs } from "../memory-blobs.ts";
import { seededRandom } from "../virtual-clock.ts";
import { check, type Place } from "../wsfs.ts";
import { markBytes, parseRecord, type Recorded } from "./log.ts";
import { PATIENT_PROGRAMS, PROGRAM, PROGRAMS } from "./programs.ts";

export const SIGNING_KEY = Buffer.alloc(32, 7);
/** Of the mount, below the recorded folder. */
export const STATE = "state";

export interface Recording {
  readonly recorded: readonly Recorded[];
  /** The gateway's rows; marks {kind: "gateway", state} say from when on. */
  readonly gateways: readonly Buffer[];
  readonly blobs: ReadonlyMap<string, Uint8Array>;
  /** What is in the state dir when all has ended. */
  readonly folder: string;
}

/** The recorder, compiled into the folder. */
export async function compileRecorder(folder: string): Promise<string> {
  const source = fileURLToPath(new URL("recorder.c", import.meta.url));
  const library = join(folder, "recorder.so");
  check(await run("cc", ["-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"]));
  return library;
}

export interface RecordOptions {
  readonly seed: number;
  readonly rounds: number;
  readonly durability?: "local" | "remote";
}

export async function record(place: Place, options: RecordOptions): Promise<Recording> {
  const library = await compileRecorder(place.folder);
  const [folder, log, mount, remote] = ["disk", "record", "mount", "remote"].map(place.path) as [
    string,
    string,
    string,
    string,
  ];
  for (const each of [folder, mount, remote]) mkdirSync(each);
  writeFileSync(log, "");
  const marks = openSync(log, "a");
  const mark = (value: unknown) => writeSync(marks, markBytes(value, BigInt(Date.now()) * 1_000_000n));

  const database = openSqlite(":memory:");
  const blobs = createMemoryBlobs();
  // A cut goes back to a time when the gateway still had them.
  const kept = new Map<string, Uint8Array>();
  const gateway = createGateway({
    clock: systemClock,
    database,
    blobs: {
      ...blobs,
      async write(blob, data) {
        await blobs.write(blob, data);
        const bytes = blobs.contents.get(blob);
        if (bytes !== undefined) kept.set(blob, bytes);
      },
    },
    signingKey: SIGNING_KEY,
    options: {},
    log: SILENT,
  });
  const gateways: Buffer[] = [];
  const keepState = () => {
    mark({ kind: "gateway", state: gateways.length });
    gateways.push(database.serialize());
  };
  const server = await startServer({
    gateway: {
      ...gateway,
      async handle(request) {
        const answer = await gateway.handle(request);
        if (request.method !== "GET") keepState();
        return answer;
      },
    },
    clock: systemClock,
    host: "127.0.0.1",
    port: 0,
    log: SILENT,
  });
  try {
    const workspace = gateway.ensureWorkspace("workspace");
    const token = gateway.issueToken({ scopes: SCOPES, ttlSeconds: 86400, workspace: workspace.id });
    const baseUrl = `http://127.0.0.1:${server.port}`;
    const random = seededRandom(options.seed);
    for (const [name, size] of [
      ["remote-big", 1_500_000],
      ["remote-small", 200_000],
      ["remote-other", 1_200_000],
      ["edited-0", 10_000],
      ["note-0", 5_000],
    ] as const) {
      const content = Uint8Array.from({ length: size }, () => 1 + Math.floor(random() * 255));
      if (name.startsWith("remote")) writeFileSync(join(remote, name), content);
      const body = new FormData();
      body.set("file", new Blob([content]), name);
      const answer = await fetch(`${baseUrl}/v1/files/${name}`, {
        method: "POST",
        headers: { authorization: `Bearer ${token}` },
        body,
      });
      if (answer.status !== 201) throw new Error(`upload of ${name}: ${answer.status} ${await answer.text()}`);
    }
    writeFileSync(place.path("token"), token, { mode: 0o600 });
    const from = ["--base-url", baseUrl, "--workspace", "workspace", "--token-file", place.path("token")];
    const preloaded = { LD_PRELOAD: library, WSFS_POWER_ROOT: folder, WSFS_POWER_LOG: log };
    const { durability = "local" } = options;
    const args = ["mount", mount, ...from, "--state-dir", join(folder, STATE), "--background"];
    // What the kernel writes by itself is not recorded.
    args.push("--durability", durability, "--no-passthrough");
    check(await place.wsfs(args, { env: preloaded }));
    const env = { ...place.env, WSFS_POWER_MARKS: log, WSFS_POWER_DURABILITY: durability };
    const ended = await Promise.all(
      (durability === "remote" ? PATIENT_PROGRAMS : PROGRAMS).map((program) =>
        run("/usr/bin/python3", ["-c", PROGRAM, program, mount, remote, String(options.seed), String(options.rounds)], {
          env,
          timeoutMs: 300_000,
        }),
      ),
    );
    for (const each of ended) check(each);
    check(await place.wsfs(["umount", mount], { timeoutMs: 120_000 }));
    return { recorded: parseRecord(readFileSync(log)), gateways, blobs: kept, folder };
  } finally {
    gateway.endStreams();
    await server.close();
    closeSync(marks);
    database.close();
  }
}

/** The gateway as it was, to be gone on from. */
export function gatewayAt(recording: Recording, state: number) {
  const rows = recording.gateways[state];
  if (rows === undefined)
    throw new Error(`expected one of ${recording.gateways.length} states of the gateway, got ${state}`);
  const database = openSqlite(rows);
  const blobs = createMemoryBlobs();
  const contents = blobs.contents as Map<string, Uint8Array>;
  for (const [blob, bytes] of recording.blobs) contents.set(blob, bytes);
  return { database, blobs };
}
