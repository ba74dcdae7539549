/**
 * One line for each operation: name, node, arguments, result, duration, caller. The usual level is debug, which costs
 * nothing while it is off. It is warn when the operation was slow, or failed with EIO. It is error when a handler threw
 * an error that is no FsError. Of bytes, only their number is shown.
 */

import { FsError } from "../engine/api/index.ts";
import { type ElapsedTime, minus } from "../lib/clocks.ts";
import { describeError, type Logger } from "../lib/log.ts";
import type { InFlight, Origin } from "./in-flight.ts";

interface Outcome {
  /** An errno name, or "ok". */
  readonly result: string;
  readonly reply?: unknown;
  readonly error?: unknown;
}

/** The pause between two warnings about EIO of one operation: without a network thousands fail in a second. */
const QUIET_MS = 1000;

interface OperationLog {
  done(request: InFlight<Origin>, outcome: Outcome, now: ElapsedTime): void;
}

export function createOperationLog(log: Logger, slowMs: number): OperationLog {
  const lastWarning = new Map<string, ElapsedTime>();

  function mayWarn(name: string, now: ElapsedTime): boolean {
    const last = lastWarning.get(name);
    if (last !== undefined && minus(now, last) < QUIET_MS) return false;
    lastWarning.set(name, now);
    return true;
  }

  return {
    done(request, outcome, now) {
      const milliseconds = minus(now, request.started);
      const { error } = outcome;
      if (error !== undefined && !(error instanceof FsError)) {
        const stack = error instanceof Error ? error.stack : undefined;
        log.error({ ...fields(request, outcome, milliseconds), stack }, "operation failed by a bug");
      } else if (milliseconds > slowMs) {
        log.warn(fields(request, outcome, milliseconds), "slow operation");
      } else if (outcome.result === "EIO" && mayWarn(request.name, now)) {
        log.warn(fields(request, outcome, milliseconds), "operation failed");
      } else if (log.isLevelEnabled("debug")) {
        log.debug(fields(request, outcome, milliseconds), "operation");
      }
    },
  };
}

function fields(request: InFlight<Origin>, { result, reply, error }: Outcome, milliseconds: number): object {
  return {
    op: request.name,
    id: request.id,
    node: request.nodeid,
    args: summary(request.request),
    result,
    ...(reply !== undefined && { reply: summary(reply) }),
    ...(error !== undefined && { error: describeError(error) }),
    ms: Math.round(milliseconds * 1000) / 1000,
    uid: request.uid,
    pid: request.pid,
  };
}

/** Shows plain fields as they are, bytes and lists as their length, two levels deep. */
export function summary(value: unknown, depth = 2): unknown {
  if (value instanceof Uint8Array) return `<${value.length} bytes>`;
  if (Array.isArray(value)) return `<${value.length} items>`;
  if (typeof value !== "object" || value === null) return value;
  if (depth === 0) return "<object>";
  return Object.fromEntries(Object.entries(value).map(([key, field]) => [key, summary(field, depth - 1)]));
}
