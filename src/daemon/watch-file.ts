/** Tells when a file may have changed: written, replaced, removed, there again. Looks at nothing but its folder and itself. */
import { lstat } from "node:fs/promises";
import { dirname } from "node:path";
import { type FSWatcher, watch } from "chokidar";
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

/** Calls back once all is quiet again. */
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

  /** chokidar tells of a folder that goes, but not always: of several events at about the same moment it drops some. */
  async function requireFolder(): Promise<void> {
    const there = await identityOf(folder);
    if (!isClosed && there !== watched) startAgain();
  }

  /** `isLate`: what has happened meanwhile nobody has told. */
  async function start(isLate: boolean): Promise<void> {
    watched = await identityOf(folder);
    if (isClosed) return;
    if (watched === undefined) return startAgain();
    const started = watch(folder, {
      depth: 0,
      ignoreInitial: true,
      followSymlinks: false,
      ignored: (path) => path !== folder && path !== file,
    });
    watcher = started;
    started.on("all", settle);
    started.on("error", startAgain);
    if (isLate) started.once("ready", settle);
  }

  function startAgain(): void {
    void watcher?.close();
    again?.cancel();
    again = clock.setTimer(AGAIN_MS, () => void start(true));
  }

  void start(false);
  return {
    async close() {
      isClosed = true;
      quiet?.cancel();
      again?.cancel();
      await watcher?.close();
    },
  };
}
