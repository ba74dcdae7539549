/** Tells when a file may have changed: written, replaced, removed, there again. Looks at nothing but its folder and itself. */
import { type FSWatcher, watch } from "node:fs";
import { lstat } from "node:fs/promises";
import { basename, dirname } from "node:path";
import type { Clock, Timer } from "../lib/runtime.ts";

/** Programs write a file in several steps. */
const QUIET_MS = 300;
/** A folder that is not there is looked for so often: the kernel watches what was removed, not what takes its place. */
const AGAIN_MS = 2_000;

/** Names a folder, whatever lies in it: another one in its place has another identity. Undefined where there is none. */
async function identityOf(folder: string): Promise<string | undefined> {
  const stat = await lstat(folder, { bigint: true }).catch(() => undefined);
  return stat === undefined ? undefined : `${stat.dev} ${stat.ino} ${stat.birthtimeNs}`;
}

/** Calls back once all is quiet again, and once when the folder is watched: what came before that is told by it. */
export function watchFile(
  file: string,
  clock: Pick<Clock, "setTimer">,
  onChange: () => void,
): { close(): Promise<void> } {
  const folder = dirname(file);
  let watcher: FSWatcher | undefined;
  let watched: string | undefined;
  let isClosed = false;
  let quiet: Timer | undefined;
  let again: Timer | undefined;

  function settle(): void {
    quiet?.cancel();
    quiet = clock.setTimer(QUIET_MS, () => {
      onChange();
      void requireFolder();
    });
  }

  /** The kernel tells that the folder went, and not that another one has its place. */
  async function requireFolder(): Promise<void> {
    const there = await identityOf(folder);
    if (!isClosed && there !== watched) startAgain();
  }

  async function start(): Promise<void> {
    watched = await identityOf(folder);
    if (isClosed) return;
    if (watched === undefined) return startAgain();
    try {
      watcher = watch(folder, (_, name) => {
        if (name === null || name === basename(file) || name === basename(folder)) settle();
      });
    } catch {
      return startAgain();
    }
    watcher.on("error", startAgain);
    // What happened before the kernel watched is told now.
    settle();
  }

  function startAgain(): void {
    watcher?.close();
    again?.cancel();
    again = clock.setTimer(AGAIN_MS, () => void start());
  }

  void start();
  return {
    async close() {
      isClosed = true;
      quiet?.cancel();
      again?.cancel();
      watcher?.close();
    },
  };
}
