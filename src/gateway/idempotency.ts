/**
 * A request repeated with its idempotency key gets the first answer, also after a restart. Keys belong to a workspace
 * and live at least 24 hours. The data for the first answer are stored in the transaction of its effect, so of two
 * requests at once the later one finds them.
 */

import { hash } from "node:crypto";
import { anyReceipt } from "../contract/resources.ts";
import { KEY_LIFETIME_MS } from "./attribute-states.ts";
import type { Context } from "./context.ts";
import { type GatewayAnswer, jsonAnswer } from "./exchange.ts";
import { showWritten, type Written } from "./node-rows.ts";
import { invalid } from "./problems.ts";
import { mayRead } from "./scopes.ts";
import type { Caller } from "./tokens.ts";

/** The number of keys in a batch. */
const LOOK_COUNT = 500;

interface KeyedRequest {
  readonly workspace: string;
  readonly key: string | null | undefined;
  /**
   * The values that must be equal for a request to be the same: operation, place, content. The keys of objects may be
   * in any order.
   */
  readonly same: readonly (string | number | null | object)[];
}

/**
 * Removes expired keys, within a transaction, from a batch of keys made after the one numbered `after`. Returns the
 * number to go on after; undefined when the following keys are younger. A key from the future, because the clock was
 * set back, begins to age now.
 */
export function forgetKeys({ store, clock }: Context, after: number): number | undefined {
  const now = clock.wallClock();
  const oldest = now - KEY_LIFETIME_MS;
  const keys = store
    .prepare<{ id: number; time: number }>(
      `SELECT id, time FROM idempotency WHERE id > ? ORDER BY id LIMIT ${LOOK_COUNT}`,
    )
    .all(after);
  const last = keys.at(-1);
  if (last === undefined) return undefined;
  store.prepare("DELETE FROM idempotency WHERE id > ? AND id <= ? AND time < ?").run(after, last.id, oldest);
  store.prepare("UPDATE idempotency SET time = ? WHERE id > ? AND id <= ? AND time > ?").run(now, after, last.id, now);
  const isYoung = oldest <= last.time && last.time <= now;
  return isYoung || keys.length < LOOK_COUNT ? undefined : last.id;
}

/** The result of a request: a node after it, or another value. */
type Outcome =
  | { readonly status: number; readonly written: Written }
  | { readonly status: number; readonly value: unknown };

interface FirstOutcome {
  readonly request: string;
  readonly status: number;
  readonly node: string | null;
  readonly position: number | null;
  readonly branch: string | null;
  readonly answer: string | null;
}

/** Returns the request of the key, and its result. */
export function findKey({ store }: Pick<Context, "store">, workspace: string, key: string): FirstOutcome | undefined {
  return store
    .prepare<FirstOutcome>(
      "SELECT request, status, node, position, branch, answer FROM idempotency WHERE key = ? AND workspace = ?",
    )
    .get(key, workspace);
}

/**
 * Must be called within a transaction. Returns the first answer, or runs `effect` and stores the data from which its
 * answer is made again. The answer shows as much as the caller may read. `show` makes the answer of a value that
 * belongs to no node: a caller with the right to the operation may see it.
 */
export function once(
  context: Context,
  caller: Caller,
  request: KeyedRequest,
  effect: () => Outcome,
  show: Show = (value) => (mayRead(caller) ? value : anyReceipt.parse(value)),
): GatewayAnswer {
  const { store, clock } = context;
  const { workspace, key } = request;
  if (key === null || key === undefined) {
    return answerOf(context, caller, effect(), show);
  }
  const fingerprint = hash("sha256", JSON.stringify(request.same, inOrder), "base64url");
  const first = findKey(context, workspace, key);
  if (first !== undefined) {
    if (first.request !== fingerprint) {
      throw invalid("idempotencyKey", "idempotencyKey: the key was used for another request (other content or path)");
    }
    return answerAgain(context, caller, first, show);
  }
  const outcome = effect();
  const { id, position, branch } = "written" in outcome ? outcome.written : NOTHING_WRITTEN;
  store
    .prepare(
      `INSERT INTO idempotency (key, workspace, request, time, status, node, position, branch, answer)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    )
    .run(
      key,
      workspace,
      fingerprint,
      clock.wallClock(),
      outcome.status,
      id ?? null,
      position ?? null,
      branch ?? null,
      "written" in outcome ? null : JSON.stringify(outcome.value),
    );
  return answerOf(context, caller, outcome, show);
}

const NOTHING_WRITTEN: Partial<Written> = {};

type Show = (value: unknown) => unknown;

function answerOf(context: Context, caller: Caller, outcome: Outcome, show: Show): GatewayAnswer {
  if (!("written" in outcome)) return jsonAnswer(outcome.status, show(outcome.value));
  const node = showWritten(context, outcome.written);
  return jsonAnswer(outcome.status, mayRead(caller) ? node : anyReceipt.parse(node));
}

function answerAgain(context: Context, caller: Caller, first: FirstOutcome, show: Show): GatewayAnswer {
  const { status, node, position, branch, answer } = first;
  if (answer !== null) return answerOf(context, caller, { status, value: JSON.parse(answer) }, show);
  if (node === null || position === null) throw new Error("An answer was not kept.");
  return answerOf(context, caller, { status, written: { id: node, position, branch: branch ?? undefined } }, show);
}

/** A replacer for JSON.stringify: puts the keys of objects in one order. */
function inOrder(_: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
