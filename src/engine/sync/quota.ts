/**
 * The workspace's quota: what the workspace holds at the gateway, as told and as our own requests have changed it
 * since, and what waits here to be added. Nothing is sent for which the gateway is known to have no room, and a program
 * that adds bytes that will not fit gets EDQUOT. The gateway is asked again now and then, because others add and remove
 * too; when more room is found, rows that were held back are looked at. What is known here may be wrong: what the
 * gateway says counts (acknowledge.ts). The account's role comes with the same answer (host/read-only.ts). While it is
 * too low, it is asked for as well.
 */
import { RemoteError } from "../../client/errors.ts";
import type { Workspace } from "../../contract/resources.ts";
import { type ElapsedTime, minus, plus } from "../../lib/clocks.ts";
import { inStep, sleep } from "../../lib/runtime.ts";
import { shareRuns } from "../../lib/shared-run.ts";
import type { AttemptId } from "../../metadata/ids.ts";
import type { NodeRow } from "../../metadata/nodes.ts";
import { FsError } from "../api/index.ts";
import type { Host, LocalFiles, Quota, Remote, Rows, Uploads } from "../core/index.ts";
import { createBacklog } from "../files/index.ts";
import { createGrowth, type Grown, growthOf } from "./growth.ts";

/** How often a gateway that has a quota for us is asked. */
const LOOK_MS = 15_000;
/** Before a program is refused, the gateway is asked again if its last answer is older than this … */
const FRESH_MS = 1_000;
/** … as long as that takes no longer than this … */
const PATIENCE_MS = 2_000;
/**
 * … and again after this, because requests in flight then may have been counted both there and here. What waits is
 * added up again after the same pause.
 */
const AGAIN_MS = 100;
/** Room that is found piece by piece is handed out in one go, after this time. */
const EXPEDITE_DELAY_MS = 1_000;

/** `told`: the workspace as the gateway told it. `known`: whether that was told just now. */
export function createQuota(
  context: Rows & LocalFiles & Remote & Uploads & Host,
  told: Workspace,
  known: boolean,
): Quota {
  const { runtime, metadata, client, network, activity, log, fileState } = context;
  const backlog = createBacklog(context, metadata.nodes.pendingGrowth);
  let { quota: limit, used: held = 0 } = told;
  const sum = createGrowth(context);
  /** Bytes that answers have added, by attempt, until it is known that the answers were stored. */
  const growing = new Map<AttemptId, Grown>();
  let isKnown = known;
  let toldAt = runtime.elapsed();
  let askedAt: ElapsedTime | undefined;
  /** Nothing was being sent when the gateway told it. */
  let isExact = true;
  /** Bytes. Never less than what waits. */
  let mostWaiting = Number.POSITIVE_INFINITY;
  /** Bytes that programs were allowed to add since the start. */
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

  /** If this may be another workspace, its answer says nothing of the role. */
  function learnRole(found: Workspace | undefined): void {
    if (network.doubt === undefined) context.readOnly.shown(found);
  }

  /**
   * If the transaction of an answer is undone, it runs again, or its request is repeated. Either way the growth is
   * counted again then, and only once.
   */
  function countGrown(): void {
    for (const [id, { node, growth }] of growing) {
      if (!sum.isUndone(id, node)) held = Math.max(0, held + growth);
    }
    growing.clear();
  }

  function handOut(): void {
    if (!isHolding || !isStarted) return;
    expediteTimer ??= runtime.setTimer(EXPEDITE_DELAY_MS, () => {
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
      // An account that may not see the token's workspace gets the same answer.
      if (error instanceof RemoteError && error.code === "notFound") learnRole(undefined);
      log.debug({ err: error }, "the workspace's quota could not be asked for");
    } finally {
      askedAt = runtime.elapsed();
    }
  });

  /** If there is no quota, nothing is asked: the first refusal tells of a new one. */
  function lookLater(): void {
    const isNothingToTell = limit === undefined && isKnown && !context.readOnly.isForRole;
    if (!isStarted || timer !== undefined || isNothingToTell) return;
    timer = runtime.setTimer(inStep(runtime, LOOK_MS), () => {
      context.background("asking for the quota", async () => {
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

  /** Asks the gateway again. Returns false if nothing better can be known. */
  async function askAgain(until: ElapsedTime): Promise<boolean> {
    const isFresh = minus(runtime.elapsed(), toldAt) < FRESH_MS;
    const left = minus(until, runtime.elapsed());
    if (!network.isOnline || (isFresh && isExact) || left <= 0) return false;
    const over = new AbortController();
    const isAskedJustNow = isFresh || (askedAt !== undefined && minus(runtime.elapsed(), askedAt) < AGAIN_MS);
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
      const until = plus(runtime.elapsed(), PATIENCE_MS);
      for (;;) {
        const before = letIn;
        const waiting = await sum.measure();
        // Bytes that other programs were allowed to add meanwhile may or may not be in the sum.
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

/** True: the gateway has room for the row's content, as far as is known. */
export function fits(context: Pick<Rows & Remote, "metadata" | "quota">, row: NodeRow): boolean {
  return context.quota.limit === undefined || context.quota.takes(growthOf(context, row));
}
