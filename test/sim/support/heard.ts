/**
 * How far a mount has heard where no journal tells: the folders it knows, and when each was last asked for
 * that has been looked at since. The engine itself keeps no account of it.
 */
import type { Context } from "../../../src/vfs/context/context.ts";
import { FsError } from "../../../src/vfs/errors.ts";
import { rowOfFolder } from "../../../src/vfs/names/identity.ts";

export interface Heard {
  /** Known folders (inodes) of which no list is here, judged to its end, that was asked for at `since` or later. */
  notSince(since: number): number[];
}

/** `elapsed`: of the clock `since` is of. */
export function hearLists(context: Context, elapsed: () => number): Heard {
  const { listings, metadata } = context;
  const askedAt = new Map<number, number>();
  const run = listings.run.bind(listings);
  Object.assign(listings, {
    run(...[folder, work, ...rest]: Parameters<typeof run>) {
      // Who comes while a list is under way gets that one, asked for before.
      const told: typeof work = (awaited) => {
        const asked = elapsed();
        const tell = () => void askedAt.set(folder, asked);
        const list = work(awaited);
        // A folder that is not found was told of too: its node is read again by itself.
        list.then(tell, (error: unknown) => error instanceof FsError && error.code === "ENOENT" && tell());
        return list;
      };
      return run(folder, told, ...rest);
    },
  });
  return {
    notSince(since) {
      const unheard: number[] = [];
      for (let folder = metadata.inodes.knownFolderAfter(0); folder !== undefined; ) {
        // One that is not at the gateway nobody else can have put anything into.
        const isThere = rowOfFolder(context, folder)?.nodeId != null;
        if (isThere && (askedAt.get(folder) ?? Number.NEGATIVE_INFINITY) < since) unheard.push(folder);
        folder = metadata.inodes.knownFolderAfter(folder);
      }
      return unheard;
    },
  };
}
