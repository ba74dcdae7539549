/** Asks the daemon of a mount. If it dies before it has answered, its successor is asked. */
import { ControlError, Refusal } from "../daemon/control-client.ts";
import type { DaemonSocket } from "../daemon/runtime-folder.ts";
import { findSuccessor, type Served } from "./find-mount.ts";

/** `question` may be asked more than once. Rejects with the ControlError of the last daemon asked. */
export async function ask<T>(served: Served, question: (socket: DaemonSocket) => Promise<T>): Promise<T> {
  for (let asked = served; ; ) {
    try {
      return await question(asked.socket);
    } catch (error) {
      const isUnanswered = error instanceof ControlError && !(error instanceof Refusal);
      const next = isUnanswered ? await findSuccessor(asked) : undefined;
      if (next === undefined) throw error;
      asked = next;
    }
  }
}
