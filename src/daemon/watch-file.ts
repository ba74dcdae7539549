/**
 * Tells when a file may have changed: written, replaced, removed, created again. It looks only at the folder and at the
 * file.
 */
import { type FSWatcher, watch } from "node:fs";
import { lstat } from "node:fs/promises";
import { basename, dirname } from "node:path";
import type { Clock, Timer } from "../lib/runtime.ts";

/** Programs write a file in several steps. */
const QUIET_MS = 300;
/**
 * The interval of looks for a missing folder: the kernel watches the removed folder, not the one that takes its place.
 */
const AGAIN_MS = 2_000;

/**
 * Identifies a folder, whatever is in it: another folder in its place has another identity. Undefined when there is
 * none.
 */
async function identityOf(folder: string): Promise<string | undefined> {
  const stat = await lstat(folder, { bigint: true }).catch(() => undefined);
  return stat === undefined ? undefined : `${stat.dev} ${stat.ino} ${stat.birthtimeNs}`;
}

/** Calls back when it is quiet again after a change, and once when the watch begins, which covers earlier changes. */
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

  function awaitQuiet(): void {
    quiet?.cancel();
    quiet = clock.setTimer(QUIET_MS, () => {
      onChange();
      void requireFolder();
    });
  }

  /** The kernel reports that the folder went, but not that another one took its place. */
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
        if (name === null || name === basename(file) || name === basename(folder)) awaitQuiet();
      });
    } catch {
      return startAgain();
    }
    watcher.on("error", startAgain);
    // Changes from before the watch are reported now.
    awaitQuiet();
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
