/**
 * Node ids that answer 404 though something told of the node. A gateway may not find a node for a
 * moment after its creation, also when its journal told of it already; so the id is asked for again
 * until it answers, the journal tells of the deletion, or the settle time is over: only then is the
 * node gone. What came from the journal is read again from there after a restart.
 */

import type { Clock } from "../lib/runtime.ts";
import type { Metadata } from "../metadata/metadata.ts";
import type { Request } from "./request.ts";

/** How long an id has to answer 404 before that is believed. */
export const SETTLE_MS = 5 * 60_000;
const AGAIN_FIRST_MS = 500;
const AGAIN_MAX_MS = 8_000;
/** Asked for in one go; the journal waits meanwhile. */
const DUE_MAX = 64;

export interface Unfound {
  /** The id answered 404; `position`: of the journal entry that told of the node. True: for so long that it is gone. */
  note(nodeId: string, position?: number): boolean;
  /** The id answered, or the journal told of the deletion, or nobody asks any more. */
  forget(nodeId: string): void;
  /** Those to be asked for again by now, some of them where they are many. */
  due(): string[];
}

interface Missing {
  readonly since: number;
  again: number;
  tries: number;
  /** Of the oldest journal entry that told of it; undefined when another source did. */
  position: number | undefined;
}

export function createUnfound(metadata: Metadata<Request>, clock: Clock): Unfound {
  const { settings } = metadata;
  const missing = new Map<string, Missing>();

  // The last mount ended before it found them: the journal tells of them again.
  const unread = settings.getNumber("unread");
  if (unread > 0 && unread <= settings.getNumber("cursor")) settings.set("cursor", String(unread - 1));

  function keep(): void {
    let oldest = 0;
    for (const { position } of missing.values()) {
      if (position !== undefined && (oldest === 0 || position < oldest)) oldest = position;
    }
    if (settings.getNumber("unread") !== oldest) settings.set("unread", String(oldest));
  }

  return {
    note(nodeId, position) {
      const now = clock.elapsed();
      const known = missing.get(nodeId) ?? { since: now, again: now, tries: 0, position };
      if (now - known.since >= SETTLE_MS) return true;
      if (position !== undefined) known.position = Math.min(position, known.position ?? position);
      known.again = now + Math.min(AGAIN_MAX_MS, AGAIN_FIRST_MS * 2 ** known.tries);
      known.tries += 1;
      missing.set(nodeId, known);
      if (position !== undefined) keep();
      return false;
    },
    forget(nodeId) {
      const known = missing.get(nodeId);
      if (known === undefined) return;
      missing.delete(nodeId);
      if (known.position !== undefined) keep();
    },
    due() {
      const now = clock.elapsed();
      const due = [...missing].filter(([, { again }]) => again <= now).sort(([, a], [, b]) => a.again - b.again);
      return due.slice(0, DUE_MAX).map(([nodeId]) => nodeId);
    },
  };
}
