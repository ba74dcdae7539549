/** Unsent changes of a mount. The history at the gateway lacks them. */
import { setTimeout as pause } from "node:timers/promises";
import type { MountStatus, QueueItem } from "../../daemon/control-messages.ts";
import { drainWithProgress } from "../drain.ts";
import { Failure } from "../failure.ts";
import { describeUnsent, formatCount, printable } from "../wording.ts";
import { isWithin } from "./target.ts";
import { type OfMount, pathBelow } from "./workspace.ts";

const NAMED_MAX = 5;
const ALL_ITEMS = 1e9;

/** Commands that only show something print one line when the mount has unsent changes. */
export async function noteUnsent(mount: OfMount | undefined): Promise<void> {
  if (mount === undefined) return;
  const { dirty } = await statusOf(mount);
  if (dirty === 0) return;
  process.stderr.write(`wsfs: not shown: ${formatCount(dirty, "change")} that ${mount.dir} has not uploaded yet\n`);
}

/**
 * To be called before a command changes the gateway: earlier changes by programs in the mount are uploaded first.
 * Changes that cannot be sent in time are an error only if they concern one of the paths. Rejects with a Failure.
 */
export async function settle(mount: OfMount | undefined, paths: readonly string[], seconds: number): Promise<void> {
  if (mount === undefined) return;
  const { dir, served, folder } = mount;
  const status = await statusOf(mount);
  if (status.dirty > 0) {
    process.stderr.write(`wsfs: waiting until ${dir} has uploaded ${describeUnsent(status)}\n`);
  }
  const { drained } = await drainWithProgress(dir, served, { settle: true, seconds });
  if (drained) return;
  const items: QueueItem[] = [];
  const [{ ask }, { getQueue }] = await Promise.all([import("../ask.ts"), import("../../daemon/control-client.ts")]);
  await ask(served, (socket) => {
    items.length = 0;
    return getQueue(socket, ALL_ITEMS, { sums() {}, item: (item) => items.push(item) });
  });
  const inTheWay = items.filter((item) => paths.some((path) => isAbout(pathBelow(folder, item.path), path)));
  if (inTheWay.length === 0 && items.length > 0) return;
  const named = inTheWay.slice(0, NAMED_MAX).map(({ path, why }) => `${path} (${why})`);
  const more = inTheWay.length - named.length;
  const left = [...named, ...(more > 0 ? [`and ${more} more`] : [])].join(", ") || "the gateway's index is behind";
  throw new Failure(`nothing was changed, as ${dir} has not uploaded all: ${printable(left)}; see wsfs queue ${dir}`);
}

const LOOK_MS = 50;

/**
 * To be called after a command has changed the gateway. Waits at most `seconds` until programs in the mount see the
 * change; else a line says that they do not. `position`: the journal position of the last change; undefined: nothing
 * was changed.
 */
export async function awaitShown(
  mount: OfMount | undefined,
  position: number | undefined,
  seconds: number,
): Promise<void> {
  if (mount === undefined || position === undefined) return;
  const end = performance.now() + seconds * 1000;
  try {
    while (!(await isShown(mount, position))) {
      if (performance.now() >= end) return tellNotShown(mount);
      await pause(LOOK_MS);
    }
  } catch (error) {
    // The mount has ended, and no daemon takes it over. The command has done its work all the same.
    const { ControlError } = await import("../../daemon/control-client.ts");
    if (!(error instanceof ControlError)) throw error;
    tellNotShown(mount);
  }
}

function tellNotShown({ dir }: OfMount): void {
  process.stderr.write(`wsfs: it is done at the gateway, and ${dir} does not show all of it yet\n`);
}

/** True: the mount shows the position, or its daemon reports none, so that there is nothing to wait for. */
async function isShown(mount: OfMount, position: number): Promise<boolean> {
  const { position: shown = position } = await statusOf(mount);
  return shown >= position;
}

/** A change concerns a path if it is at the path, below it, or at a folder above it. */
const isAbout = (changed: string, path: string) => isWithin(changed, path) || isWithin(path, changed);

async function statusOf({ served }: OfMount): Promise<MountStatus> {
  const [{ ask }, { getStatus }] = await Promise.all([import("../ask.ts"), import("../../daemon/control-client.ts")]);
  return ask(served, getStatus);
}
