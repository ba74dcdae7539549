/**
 * The messages on a daemon's control socket: HTTP with JSON bodies. Both sides check what they receive with these
 * schemas, because a daemon and a command may be of different releases.
 *
 *   GET  /status                                   -> MountStatus
 *   GET  /queue?limit=N                            -> lines of QueueLine, the first one the sums, the last one the end
 *   POST /queue/retry  RetryRequest                -> RetryReply
 *   POST /drain    DrainRequest                    -> lines of DrainLine, the last one a result
 *   POST /unmount                                  -> UnmountReply
 *   POST /reload   ReloadRequest                   -> {}: the daemon gives way; its successor's record tells the result
 */
import { z } from "zod";
import type { DrainProgress, DrainResult, EngineStatus, QueueItem, RetryResult } from "../engine/api/index.ts";
import { entrySettings } from "./entry-settings.ts";
import { settingsChange } from "./reload-settings.ts";
import { owners } from "./settings.ts";
import { WORD_END } from "./supervisor-link.ts";

export type { DrainProgress, DrainResult, QueueItem, RetryResult };

const count = z.number().min(0);

const diskStatus = z.object({
  state: z.enum(["ok", "full", "readOnly", "gone", "broken", "damaged"]),
  reason: z.string().optional(),
  total: count,
  available: count,
  reserve: count,
  keepFree: count,
  unsentLimit: count.optional(),
});

const detachedFile = z.object({ path: z.string(), inode: count, isRemoved: z.boolean(), isWritten: z.boolean() });

const engineStatus = z.object({
  workspace: z.object({ id: z.string(), name: z.string() }),
  folder: z.object({ id: z.string(), name: z.string() }).optional(),
  at: z.string().optional(),
  online: z.boolean(),
  live: z.boolean(),
  staleMs: count.optional(),
  /** Absent in the answer of an earlier release. */
  staleWhy: z.string().optional(),
  readOnly: z.string().optional(),
  paused: z.string().optional(),
  offlineMs: count.optional(),
  dirty: count,
  uploading: count,
  parked: count,
  bytesPending: count,
  settled: z.boolean(),
  /** Absent where the gateway keeps no journal, and in the answer of an earlier release. */
  position: count.optional(),
  history: z.string().nullable().optional(),
  overtaken: z.array(detachedFile).readonly().optional(),
  conflicts: count,
  /** Absent: the daemon is of an earlier release. */
  names: z.object({ known: count, rest: z.enum(["all", "ahead", "visited"]) }).optional(),
  cacheBytes: count,
  cacheLimit: count,
  restored: z.object({ why: z.string(), files: count }).optional(),
  quota: z.object({ limit: count, used: count, waiting: z.number() }).optional(),
  disk: diskStatus.optional(),
  oldestPendingMs: count,
});

export const mountStatus = engineStatus.extend({
  mountpoint: z.string(),
  /** The daemon's process id. */
  pid: z.number().int(),
  supervisorPid: z.number().int(),
  connection: z.number().int(),
  stateDir: z.string(),
  baseUrl: z.string(),
  version: z.string(),
  /** Seconds since the mount became usable. */
  uptime: count,
  /** The number of replacements of the daemon since the mount was made, and the cause of the last one. */
  restarts: z.object({ count, cause: z.string() }).optional(),
  transport: z.enum(["kernel", "fuse-native"]).optional(),
  /** The environment whose entry in the configuration file is followed, and why part of that entry is not in effect. */
  environment: z.object({ name: z.string(), file: z.string(), trouble: z.string().optional() }).optional(),
  /** The owners that are shown. Absent in the answer of an earlier release, which knows only "mine". */
  owners: owners.optional(),
  /** The kernel reads and writes local files itself. */
  passthrough: z.boolean(),
  /** The reason why passthrough is off. */
  passthroughOff: z.string().optional(),
  /** Requests of the kernel answered so far, by the protocol's name. */
  operations: z.record(z.string(), count),
  /**
   * The numbers of those that were answered on the fast path: READs, WRITEs and GETXATTRs that no JavaScript saw.
   * Absent in the answer of an earlier release.
   */
  moved: z.record(z.string(), count).optional(),
});
export type MountStatus = z.infer<typeof mountStatus>;

const queueItem = z.object({
  path: z.string(),
  what: z.enum(["folder", "upload", "copy", "version", "move", "attributes", "delete"]),
  state: z.enum(["sending", "due", "quiet", "open", "waiting", "retry", "parked"]),
  why: z.string(),
  bytes: count,
  bytesSent: count,
  tries: count,
  ageMs: count,
  nextTryMs: count.optional(),
  error: z.string().optional(),
});

/** The sums of everything in the queue, listed or not. */
const queueSums = z.object({
  dirty: count,
  uploading: count,
  parked: count,
  bytesPending: count,
  oldestPendingMs: count,
  paused: z.string().optional(),
  offlineMs: count.optional(),
});
export type QueueSums = z.infer<typeof queueSums>;

export const queueLine = z.union([
  z.object({ sums: queueSums }),
  z.object({ item: queueItem }),
  /** The number of sent items. A list without this line was broken off. */
  z.object({ listed: count }),
]);
export type QueueLine = z.infer<typeof queueLine>;

/** Without `paths`: everything. */
export const retryRequest = z.strictObject({ paths: z.array(z.string().startsWith("/")).optional() });
export const retryReply = z.object({
  retried: count,
  unknown: z.array(z.string()),
  held: z.object({ why: z.string() }).optional(),
});

export const drainRequest = z.strictObject({ settle: z.boolean(), timeoutMs: count.optional() });
export type DrainRequest = z.infer<typeof drainRequest>;

const drainProgress = z.object({
  dirty: count,
  parked: count,
  bytesPending: count,
  stuck: z.string().optional(),
  bytesSent: count,
  settled: z.boolean(),
});
const drainResult = z.object({ drained: z.boolean(), left: z.array(z.string()) });
export const drainLine = z.union([z.object({ progress: drainProgress }), z.object({ result: drainResult })]);
export type DrainLine = z.infer<typeof drainLine>;

/** `dirty` and `bytesPending`: the changes that the next mount of this state dir still has to upload. */
const unmounted = z.object({
  dirty: count,
  parked: count,
  bytesPending: count,
  /** Other mount namespaces have copies of the mount, which no daemon serves any more. */
  elsewhere: z.boolean().optional(),
  /** The state dir was removed or moved away: the next mount may not find it. */
  stateGone: z.boolean().optional(),
});
export const unmountReply = z.union([z.object({ unmounted }), z.object({ busy: z.string() })]);
export type UnmountReply = z.infer<typeof unmountReply>;

/** A word must not contain the character that ends words. */
const programWord = z.string().refine((word) => word !== "" && !word.includes("\n") && !word.includes(WORD_END));
/**
 * `id` is found again in the record of the daemon that this reload starts. `program` is the program of the release that
 * asks. Undefined: the daemon's own program, as it is on the disk now.
 */
export const reloadRequest = z.strictObject({
  id: z.uuid(),
  changes: settingsChange,
  /** The entry of this environment is to be applied too. `changes` go before it. */
  environment: z.strictObject({ name: z.string(), file: z.string(), entry: entrySettings }).optional(),
  program: z.array(programWord).min(1).max(16).optional(),
});
export type ReloadRequest = z.infer<typeof reloadRequest>;
export const reloadReply = z.object({});

export const errorReply = z.object({ error: z.string() });

// The schemas and the engine's own types must say the same; these lines do not compile otherwise.
type Same<A, B> = A extends B ? true : never;
const agreed: [
  Same<EngineStatus, z.infer<typeof engineStatus>>,
  Same<QueueItem, z.infer<typeof queueItem>>,
  Same<DrainProgress, z.infer<typeof drainProgress>>,
  Same<DrainResult["drained"], z.infer<typeof drainResult>["drained"]>,
  Same<RetryResult["retried"], z.infer<typeof retryReply>["retried"]>,
  Same<RetryResult["held"], z.infer<typeof retryReply>["held"]>,
] = [true, true, true, true, true, true];
void agreed;
