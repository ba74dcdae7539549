/** `wsfs queue retry`: tries refused and waiting changes now. */
import { relative, resolve } from "node:path";
import type { RetryResult } from "../daemon/control-messages.ts";
import { type MountEntry, readMountTable } from "../daemon/mount-table.ts";
import { EXIT, Failure } from "./failure.ts";
import { requireServed } from "./find-mount.ts";
import { findPlace, type Place } from "./mountpoint.ts";
import type { Values } from "./options.ts";
import { formatCount, printable } from "./wording.ts";

export async function queueRetry(values: Values<"queue retry">): Promise<number> {
  const { served, mount } = await requireServed(values.dir);
  const [{ ask }, { postRetry }] = await Promise.all([import("./ask.ts"), import("../daemon/control-client.ts")]);
  const table = readMountTable();
  const asked = new Map(values.paths.map((path) => [pathInMount(path, mount, table), path]));
  const paths = values.paths.length === 0 ? undefined : [...asked.keys()];
  const { retried, unknown, held } = await ask(served, (socket) => postRetry(socket, paths));
  if (values.json) process.stdout.write(`${JSON.stringify({ retried, unknown, held })}\n`);
  else process.stdout.write(`${formatCount(retried, "change")} tried ${describeWhen(held)}\n`);
  if (unknown.length === 0) return EXIT.ok;
  const names = unknown.map((path) => asked.get(path) ?? path).join(", ");
  throw new Failure(`nothing waits to be uploaded at ${names}; wsfs queue ${values.dir} shows what does`);
}

function describeWhen(pauseReason: RetryResult["held"]): string {
  return pauseReason === undefined ? "now" : `as soon as possible: ${printable(pauseReason.why)}`;
}

/**
 * The path as the queue shows it. A path on this machine that leads into the mount, also by links, is translated; any
 * other path counts from the mount's root. Nothing in the mount is looked at.
 */
export function pathInMount(
  path: string,
  mount: Pick<MountEntry, "connection">,
  table: readonly MountEntry[],
  folder?: string,
): string {
  const place = placeOf(path, table, folder);
  const isThere = place?.is === "ourMount" || place?.is === "insideOurMount";
  if (!isThere || place.mount.connection !== mount.connection) return resolve("/", path);
  return resolve("/", relative(place.mount.mountpoint, place.path));
}

/** Undefined: the path cannot be resolved on this machine. */
function placeOf(path: string, table: readonly MountEntry[], folder: string | undefined): Place | undefined {
  try {
    return findPlace(path, table, folder);
  } catch (error) {
    if (error instanceof Failure) return undefined;
    throw error;
  }
}
