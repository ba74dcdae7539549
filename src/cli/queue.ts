/** `wsfs queue`: shows the changes that wait to be uploaded, and why. Prints while it reads: lists may be long. */
import { once } from "node:events";
import type { QueueItem, QueueSums } from "../daemon/control-messages.ts";
import { hasCode } from "../lib/system-error.ts";
import { EXIT, Failure } from "./failure.ts";
import { requireServed } from "./find-mount.ts";
import type { Values } from "./options.ts";
import { formatCount, formatDuration, formatSize, printable } from "./wording.ts";

/** The number that a daemon takes for "all". */
const ALL = 1_000_000_000;
const WHAT_WIDTH = Math.max(...["folder", "attributes"].map((word) => word.length));

export async function queue(values: Values<"queue">): Promise<number> {
  const { served } = await requireServed(values.dir);
  const [{ ask }, { ControlError, getQueue }] = await Promise.all([
    import("./ask.ts"),
    import("../daemon/control-client.ts"),
  ]);
  let dirty = 0;
  let shown = 0;
  let isBegun = false;
  const show = {
    async sums(sums: QueueSums) {
      isBegun = true;
      ({ dirty } = sums);
      await print(values.json ? `${JSON.stringify({ sums })}\n` : describeSums(sums));
    },
    async item(item: QueueItem) {
      shown += 1;
      await print(values.json ? `${JSON.stringify({ item })}\n` : describeItem(item));
    },
  };
  await ask(served, (socket) =>
    getQueue(socket, values.limit === 0 ? ALL : values.limit, show).catch((error: unknown) => {
      // The list of another daemon would begin anew, after the beginning of this one.
      throw isBegun && error instanceof ControlError ? new Failure(error.message) : error;
    }),
  );
  const hidden = dirty - shown;
  if (!values.json && hidden > 0) await print(`and ${hidden} more; --limit 0 shows all\n`);
  return EXIT.ok;
}

/** Waits for the reader. A reader that stops (`| head`) is no failure, and ends the list. */
async function print(text: string): Promise<void> {
  try {
    if (!process.stdout.write(text)) await once(process.stdout, "drain");
  } catch (error) {
    if (!hasCode(error, "EPIPE")) throw error;
    throw new Failure("the reader of the list is gone", EXIT.ok, { shown: true });
  }
}

function describeSums(sums: QueueSums): string {
  if (sums.dirty === 0) return "nothing waits to be uploaded\n";
  const parts = [
    `${formatCount(sums.dirty, "change")}, ${formatSize(sums.bytesPending)}`,
    `oldest ${formatDuration(sums.oldestPendingMs)}`,
    ...(sums.uploading === 0 ? [] : [`${sums.uploading} under way`]),
    ...(sums.parked === 0 ? [] : [`${sums.parked} parked (wsfs queue retry tries them again)`]),
    ...(sums.offlineMs === undefined ? [] : [`offline for ${formatDuration(sums.offlineMs)}`]),
  ];
  return `${parts.join("; ")}\n${sums.paused === undefined ? "" : `paused: ${printable(sums.paused)}\n`}`;
}

function describeItem(item: QueueItem): string {
  const size = item.bytes === 0 ? "" : formatSize(item.bytes);
  const share = item.bytes === 0 ? "" : ` ${Math.floor(Math.min(1, item.bytesSent / item.bytes) * 100)}%`;
  const why = item.state === "sending" ? `${item.why}${share}` : item.why;
  const columns = [
    item.what.padEnd(WHAT_WIDTH),
    size.padStart(9),
    formatDuration(item.ageMs).padStart(11),
    `${printable(item.path)}: ${printable(why)}`,
  ];
  return `${columns.join("  ")}\n`;
}
