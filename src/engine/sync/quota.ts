/**
 * The workspace's quota: what it holds at the gateway, as told and as our own requests have moved it
 * since, and what waits here to be added. Nothing is sent of which the gateway is known to have no
 * room for, and who would add bytes that will not fit hears EDQUOT. It is asked again now and then,
 * since others add and remove too; where more room is found, what was held back is looked at. What is
 * known may be wrong: the gateway's word (settle.ts) is what holds. The account's role comes with it (host/read-only.ts):
 * while that is too low it is asked for as well.
 */
import { RemoteError } from "../../client/errors.ts";
import type { Workspace } from "../../contract/resources.ts";
import { inStep, sleep } from "../../lib/runtime.ts";
import { shareRuns } from "../../lib/shared-run.ts";
import type { AttemptId } from "../../metadata/ids.ts";
import type { NodeRow } from "../../metadata/nodes.ts";
import { FsError } from "../api/index.ts";
import {
  type Host,
  inBackground,
  type LocalFiles,
  type Quota,
  type Remote,
  type Rows,
  type Uploads,
} from "../core/index.ts";
import { createBacklog } from "../files/index.ts";
import { createGrowth, type Grown, growthOf } from "./growth.ts";

/** How often a gateway that has a quota for us is asked. */
const LOOK_MS = 15_000;
/** Before a program is refused, what was told longer ago is asked for anew … */
const FRESH_MS = 1_000;
/** … as long as that takes no longer than this … */
const PATIENCE_MS = 2_000;
/** … and asked again after this: what was being sent then may have been counted there and here. So is what waits added up. */
const AGAIN_MS = 100;
/** Room that is found in pieces is handed out in one go. */
const HASTE_MS = 1_000;

/** `isKnown`: what was told of the workspace is of now. */
export function createQuota(
  context: Rows & LocalFiles & Remote & Uploads & Host,
  told: Workspace,
  known: boolean,
): Quota {
  const { runtime, metadata, client, network, activity, log, fileState } = context;
  const backlog = createBacklog(context, metadata.nodes.pendingGrowth);
  let { quota: limit, used: held = 0 } = told;
  const sum = createGrowth(context);
  /** What answers have added, by attempt, until it is known that they were written down. */
  const growing = new Map<AttemptId, Grown>();
  let isKnown = known;
  let toldAt = runtime.elapsed();
  let askedAt = Number.NEGATIVE_INFINITY;
  /** Nothing was being sent when it was told. */
  let isExact = true;
  /** Never less than what waits. */
  let mostWaiting = Number.POSITIVE_INFINITY;
  /** Bytes that were let in, since the start. */
  let letIn = 0;
  let isHolding = false;
  let timer: ReturnType<typeof runtime.setTimer> | undefined;
  let expediteTimer: ReturnType<typeof runtime.setTimer> | undefined;
  let isStarted = false;

  function used(): number {
    let bytes = held;
    for (const { growth } of growing.values()) bytes += growth;
    return Math.max(0, bytes);
  }

  const room = () => (limit === undefined ? Number.POSITIVE_INFINITY : limit - used());

  function learn(newLimit: number | undefined, newUsed: number): void {
    const before = room();
    limit = newLimit;
    held = newUsed;
    if (room() > before) handOut();
    lookLater();
  }

  /** Of another workspace, which this may be, there is nothing to learn. */
  function learnRole(found: Workspace | undefined): void {
    if (network.doubt === undefined) context.readOnly.shown(found);
  }

  /** A transaction that is undone runs again, or its request is repeated: either way it counts again, and once. */
  function countGrown(): void {
    for (const [id, { node, growth }] of growing) {
      if (!sum.isUndone(id, node)) held = Math.max(0, held + growth);
    }
    growing.clear();
  }

  function handOut(): void {
    if (!isHolding || !isStarted) return;
    expediteTimer ??= runtime.setTimer(HASTE_MS, () => {
      expediteTimer = undefined;
      isHolding = false;
      activity.expedite();
    });
  }

  const look = shareRuns(async () => {
    const wasSending = context.sending.size > 0;
    try {
      const found = await client.findWorkspace(context.workspace.id, { signal: fileState.stopped.signal });
      network.answered();
      const isShown = found?.id === context.workspace.id;
      learnRole(isShown ? found : undefined);
      if (!isShown) return;
      isKnown = true;
      toldAt = runtime.elapsed();
      isExact = !wasSending && context.sending.size === 0;
      if (found.quota !== limit) log.info({ quota: found.quota, used: found.used }, "the workspace's quota");
      learn(found.quota, found.used ?? 0);
    } catch (error) {
      network.failed(error);
      // So is answered who may not see the one that the token is for.
      if (error instanceof RemoteError && error.code === "notFound") learnRole(undefined);
      log.debug({ err: error }, "the workspace's quota could not be asked for");
    } finally {
      askedAt = runtime.elapsed();
    }
  });

  /** Where there is none, the first refusal tells of a new one. */
  function lookLater(): void {
    const isNothingToTell = limit === undefined && isKnown && !context.readOnly.isForRole;
    if (!isStarted || timer !== undefined || isNothingToTell) return;
    timer = runtime.setTimer(inStep(runtime, LOOK_MS), () => {
      inBackground(context, "asking for the quota", async () => {
        const mayAsk = network.isOnline && network.loginNeeded === undefined && network.pauseMs("listWorkspaces") === 0;
        if (mayAsk) await look();
        timer = undefined;
        lookLater();
      });
    });
  }

  function add(growth: number): void {
    mostWaiting += growth;
    letIn += growth;
  }

  /** False: nothing better can be known. */
  async function askAgain(until: number): Promise<boolean> {
    const isFresh = runtime.elapsed() - toldAt < FRESH_MS;
    const left = until - runtime.elapsed();
    if (!network.isOnline || (isFresh && isExact) || left <= 0) return false;
    const over = new AbortController();
    const isAskedJustNow = isFresh || runtime.elapsed() - askedAt < AGAIN_MS;
    const asked = isAskedJustNow ? sleep(runtime, AGAIN_MS, over.signal).then(look) : look();
    await Promise.race([asked, sleep(runtime, left, over.signal)]);
    over.abort();
    return true;
  }

  const quota: Quota = {
    get limit() {
      return limit;
    },
    get used() {
      return used();
    },
    waiting: backlog.bytes,
    measure: sum.measure,
    excess(asked) {
      if (limit === undefined) return undefined;
      const growth = asked ?? backlog.bytes();
      if (growth <= 0 || growth <= room()) return undefined;
      return `the workspace is over quota by ${growth - room()} bytes (it holds ${used()} of ${limit}, ${growth} more are to come)`;
    },
    takes: (growth) => growth <= 0 || growth <= room(),
    holds() {
      isHolding = true;
    },
    refused(excess) {
      isKnown = true;
      toldAt = runtime.elapsed();
      learn(excess.quota, excess.used);
    },
    grew({ id, node }, growth) {
      if (limit === undefined || growth === 0) return;
      const before = room();
      if (growing.size === 0) runtime.soon(countGrown);
      growing.set(id, { node, growth });
      sum.grew(id, { node, growth });
      if (room() > before) handOut();
    },
    async require(added, exactly = async () => added) {
      if (limit === undefined || added <= 0) return;
      if (mostWaiting + added <= room()) return add(added);
      const growth = await exactly();
      if (growth <= 0) return;
      const until = runtime.elapsed() + PATIENCE_MS;
      for (;;) {
        const before = letIn;
        const waiting = await sum.measure();
        // What others were let add meanwhile may be in it, or not yet.
        mostWaiting = waiting + letIn - before;
        if (mostWaiting + growth <= room()) break;
        if (waiting + growth <= room() && runtime.elapsed() < until) {
          await sleep(runtime, AGAIN_MS);
          continue;
        }
        if (!(await askAgain(until))) {
          throw new FsError(
            "EDQUOT",
            quota.excess(mostWaiting + growth) ?? `the workspace is full: ${used()} of ${limit}`,
          );
        }
      }
      add(growth);
    },
    look,
    lookLater,
    start() {
      isStarted = true;
      lookLater();
    },
    stop() {
      isStarted = false;
      timer?.cancel();
      expediteTimer?.cancel();
    },
  };
  return quota;
}

/** Whether the gateway is not known to have no room for what the row would send. */
export function fits(context: Pick<Rows & Remote, "metadata" | "quota">, row: NodeRow): boolean {
  return context.quota.limit === undefined || context.quota.takes(growthOf(context, row));
}
