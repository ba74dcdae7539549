/** Reports, at a daemon's end, the changes that the next mount has to upload. */

import type { Engine } from "../engine/api/index.ts";
import type { Logger } from "../lib/log.ts";
import { describeAllUnsent } from "./describe-unsent.ts";

/** The report goes to the log. In the foreground a person who pressed Ctrl-C reads it too, if anything is left. */
export async function reportUnsent(engine: Pick<Engine, "measure" | "status">, log: Logger): Promise<void> {
  try {
    await engine.measure();
    const { dirty, parked, bytesPending } = engine.status();
    const text = `left to upload with the next mount: ${describeAllUnsent({ dirty, parked, bytesPending })}`;
    log[dirty === 0 ? "info" : "warn"]({ dirty, parked, bytesPending }, text);
  } catch (error) {
    log.error({ err: error }, "the changes left to upload could not be counted");
  }
}
