/**
 * The workspace's quota: the bytes that the workspace holds at the gateway (the number in its answer, and the growth by
 * our requests since), and the waiting bytes here. Content without room at the gateway is not sent, and a program that
 * adds bytes that will not fit gets EDQUOT. The gateway is asked again now and then, because other mounts add and
 * remove too. When there is more room, rows that waited for it are due again. These numbers may be wrong; a refusal by
 * the gateway counts (acknowledge.ts). The account's role comes with the same answer (host/read-only.ts). While it is
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

/** The pause between two questions to a gateway with a quota for us. */
const LOOK_MS = 15_000;
/** Before a program is refused, the gateway is asked again if its last answer is older than this. */
const FRESH_MS = 1_000;
/** The longest time that a program waits for the gateway to be asked again. */
const PATIENCE_MS = 2_000;
/**
 * The pause before the gateway is asked once more, because requests in flight may have been counted both there and
 * here. The waiting bytes are added up again after this pause too.
 */
const AGAIN_MS = 100;
/** Room may turn up piece by piece. Waiting rows are expedited once, after this time. */
const EXPEDITE_DELAY_MS = 1_000;

/** `shown`: the workspace as the gateway shows it. `known`: the gateway told it just now, not to an earlier mount. */
export function createQuota(
  context: Rows & LocalFiles & Remote & Uploads & Host,
  shown: Workspace,
  known: boolean,
): Quota {
  const { runtime, metadata, client, network, activity, log, fileState } = context;
  const backlog = createBacklog(context, metadata.nodes.pendingGrowth);
  let { quota: limit, used: usedThere = 0 } = shown;
  const sum = createGrowth(context);
  /** Bytes that answers have added, by attempt, until it is known that the answers were stored. */
  const growing = new Map<AttemptId, Grown>();
  let isKnown = known;
  let heardAt = runtime.elapsed();
  let askedAt: ElapsedTime | undefined;
  /** No request was in flight when the gateway told the number. */
  let isExact = true;
  /** The requests that were in flight then: the number may have their effect, or may not. */
  let mayBeCounted: ReadonlySet<AttemptId> = new Set();
  /** Bytes. An upper bound of the growth by waiting content. */
  let mostWaiting = Number.POSITIVE_INFINITY;
  /** Bytes that programs were allowed to add since the start. */
  let admitted = 0;
  let isHolding = false;
  let timer: ReturnType<typeof runtime.setTimer> | undefined;
  let expediteTimer: ReturnType<typeof runtime.setTimer> | undefined;
  let isStarted = false;

  function used(): number {
    let bytes = usedThere;
    for (const { growth } of growing.values()) bytes += growth;
    return Math.max(0, bytes);
  }

  const room = () => (limit === undefined ? Number.POSITIVE_INFINITY : limit - used());

  function learn(newLimit: number | undefined, newUsed: number, wasSending: boolean): void {
    const before = room();
    limit = newLimit;
    usedThere = newUsed;
    mayBeCounted = new Set(context.sending.keys());
    isExact = !wasSending && mayBeCounted.size === 0;
    if (room() > before) handOut();
    lookLater();
  }

  /** If this may be another workspace, the answer says nothing of the role. */
  function learnRole(found: Workspace | undefined): void {
    if (network.doubt === undefined) context.readOnly.shown(found);
  }

  /**
   * Moves growth from `growing` to `usedThere`, unless the transaction of its answer was undone. That transaction runs
   * again, or the request is repeated, and then the growth is counted once more.
   */
  function countGrown(): void {
    for (const [id, { node, growth }] of growing) {
      if (!sum.isUndone(id, node)) usedThere = Math.max(0, usedThere + growth);
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
      const found = await client.findWorkspace(context.workspace.id, { signal: fileState.stopped });
      network.answered();
      const isShown = found?.id === context.workspace.id;
      learnRole(isShown ? found : undefined);
      if (!isShown) return;
      isKnown = true;
      heardAt = runtime.elapsed();
      if (found.quota !== limit) log.info({ quota: found.quota, used: found.used }, "the workspace's quota");
      learn(found.quota, found.used ?? 0, wasSending);
    } catch (error) {
      network.failed(error);
      // An account that may not see the token's workspace gets the same answer.
      if (error instanceof RemoteError && error.code === "notFound") learnRole(undefined);
      log.debug({ err: error }, "the workspace's quota could not be asked for");
    } finally {
      askedAt = runtime.elapsed();
    }
  });

  /** Sets the next question to the gateway. Without a quota there is none: the first refusal tells of a new quota. */
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
    admitted += growth;
  }

  /** Asks the gateway again. Returns false if that would bring no better number, or the time is over. */
  async function askAgain(until: ElapsedTime): Promise<boolean> {
    const isFresh = minus(runtime.elapsed(), heardAt) < FRESH_MS;
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
      heardAt = runtime.elapsed();
      learn(excess.quota, excess.used, true);
    },
    grew({ id, node }, growth) {
      if (limit === undefined || growth === 0) return;
      sum.grew(id, { node, growth });
      // Bytes that were freed twice would admit programs whose bytes have no room. The next answer has them for sure.
      if (growth < 0 && mayBeCounted.has(id)) return;
      const before = room();
      if (growing.size === 0) runtime.soon(countGrown);
      growing.set(id, { node, growth });
      if (room() > before) handOut();
    },
    async require(added, exactly = async () => added) {
      if (limit === undefined || added <= 0) return;
      if (mostWaiting + added <= room()) return add(added);
      const growth = await exactly();
      if (growth <= 0) return;
      const until = plus(runtime.elapsed(), PATIENCE_MS);
      for (;;) {
        const before = admitted;
        const waiting = await sum.measure();
        // The sum may or may not contain bytes that other programs were allowed to add meanwhile, so they are added.
        mostWaiting = waiting + admitted - before;
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

/** True: the gateway has room for the row's content, as far as this mount knows. */
export function fits(context: Pick<Rows & Remote, "metadata" | "quota">, row: NodeRow): boolean {
  return context.quota.limit === undefined || context.quota.takes(growthOf(context, row));
}
