/** Tells when a file may have changed: written, replaced, removed, there again. Looks at nothing but its folder and itself. */
import { dirname } from "node:path";
import { type FSWatcher, watch } from "chokidar";
import type { Clock, Timer } from "../lib/runtime.ts";
import { fileIdentity } from "./entry-settings.ts";

/** Programs write a file in several steps. */
const QUIET_MS = 300;
/** A folder that is not there is looked for so often: the kernel watches what was removed, not what takes its place. */
const AGAIN_MS = 2_000;

/** Calls back once all is quiet again. */
export function watchFile(
  file: string,
  clock: Pick<Clock, "setTimer">,
  onChange: () => void,
): { close(): Promise<void> } {
  const folder = dirname(file);
  let watcher: FSWatcher | undefined;
  let isClosed = false;
  let quiet: Timer | undefined;
  let again: Timer | undefined;

  function settle(): void {
    quiet?.cancel();
    quiet = clock.setTimer(QUIET_MS, onChange);
  }

  /** `isLate`: what has happened meanwhile nobody has told. */
  async function start(isLate: boolean): Promise<void> {
    const isThere = (await fileIdentity(folder)) !== "none";
    if (isClosed) return;
    if (!isThere) return startAgain();
    const started = watch(folder, {
      depth: 0,
      ignoreInitial: true,
      followSymlinks: false,
      ignored: (path) => path !== folder && path !== file,
    });
    watcher = started;
    started.on("all", (event, path) => {
      settle();
      if (event === "unlinkDir" && path === folder) startAgain();
    });
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
