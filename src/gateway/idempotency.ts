/**
 * A request repeated with its idempotency key gets the first answer, also after a restart. Keys
 * belong to a workspace and live at least 24 hours. The first answer is stored in the transaction
 * of its effect, so of two requests at once the later one finds it.
 */
import { createHash } from "node:crypto";
import type { Context } from "./context.ts";
import { type GatewayAnswer, jsonAnswer } from "./exchange.ts";
import { invalid } from "./problems.ts";

/** Twice what is promised: the clock may be set by up to a day (fault-options.ts). */
const LIFETIME_MS = 48 * 3600 * 1000;
/** How many expired keys are removed in one go. */
const EXPIRE_COUNT = 500;

export interface KeyedRequest {
  readonly workspace: string;
  readonly key: string | null | undefined;
  /** What must be the same for the request to be the same one: operation, place, content. Objects by key, in any order. */
  readonly same: readonly (string | number | null | object)[];
}

/** Some of those that have lived long enough, within a transaction; false when there are no more. */
export function forgetKeys({ store, clock }: Context): boolean {
  const { changes } = store
    .prepare(
      `DELETE FROM idempotency WHERE (workspace, key) IN
       (SELECT workspace, key FROM idempotency WHERE time < ? ORDER BY time LIMIT ${EXPIRE_COUNT})`,
    )
    .run(clock.now() - LIFETIME_MS);
  return changes === EXPIRE_COUNT;
}

interface StoredAnswer {
  readonly request: string;
  readonly status: number;
  readonly answer: string;
}

/** Within a transaction: the first answer, or `effect` and its answer kept. */
export function once(
  context: Context,
  request: KeyedRequest,
  effect: () => { readonly status: number; readonly value: unknown },
): GatewayAnswer {
  const { store, clock } = context;
  const { workspace, key } = request;
  if (key === null || key === undefined) {
    const { status, value } = effect();
    return jsonAnswer(status, value);
  }
  const fingerprint = createHash("sha256").update(JSON.stringify(request.same, inOrder)).digest("base64url");
  const first = store
    .prepare<StoredAnswer>("SELECT request, status, answer FROM idempotency WHERE workspace = ? AND key = ?")
    .get(workspace, key);
  if (first !== undefined) {
    if (first.request !== fingerprint) {
      throw invalid("idempotencyKey", "idempotencyKey: the key was used for another request (other content or path)");
    }
    return jsonAnswer(first.status, JSON.parse(first.answer));
  }
  const { status, value } = effect();
  store
    .prepare("INSERT INTO idempotency (workspace, key, request, status, answer, time) VALUES (?, ?, ?, ?, ?, ?)")
    .run(workspace, key, fingerprint, status, JSON.stringify(value), clock.now());
  return jsonAnswer(status, value);
}

/** For JSON.stringify: the keys of objects in one order. */
function inOrder(_: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
