/**
 * Removes files whose rows have gone, once power loss can no longer bring the rows back. Until then a row in `gone`
 * names the file. So a file that a crash or a failing disk leaves is removed at the next chance, and not quarantined as
 * a file without a row.
 */
import type { GoneFile } from "../../metadata/gone-files.ts";
import type { Host, Rows } from "../core/index.ts";
import { logClean } from "./dirty-file-log.ts";
import type { LocalFiles } from "./room.ts";

type Needs = Pick<LocalFiles, "disk">;

const SLICE = 100;

/** Call it in the transaction in which the file's row goes. */
export function removeSoon(context: Rows & LocalFiles & Host, gone: GoneFile): void {
  const { metadata, fileState } = context;
  metadata.gone.add(gone);
  fileState.gone.push(gone);
  if (fileState.isRemoving) return;
  fileState.isRemoving = true;
  context.background("removing files that are not needed", async () => {
    // The caller's transaction comes first: it may yet be undone.
    await undefined;
    await removeWaiting(context);
  });
}

/** Files that are added during a sync of the rows share the next one. */
async function removeWaiting(context: Rows & LocalFiles & Host): Promise<void> {
  const { fileState } = context;
  const failures: unknown[] = [];
  try {
    while (fileState.gone.length > 0) failures.push(...(await tryToRemove(context, fileState.gone.splice(0, SLICE))));
  } finally {
    // If the disk refuses, the rows still name the files.
    fileState.gone.length = 0;
    fileState.isRemoving = false;
  }
  throwAny(failures);
}

/** Removes the files that a crash left or that could not be removed earlier. Rejects with the failures. */
export async function removeLeft(context: Rows & LocalFiles & Host): Promise<void> {
  const { metadata, fileState } = context;
  fileState.isLeft = false;
  const failures: unknown[] = [];
  for (let last: GoneFile | undefined; ; ) {
    const left = metadata.gone.some(SLICE, last);
    last = left.at(-1);
    if (last === undefined || fileState.stopped.aborted || isElsewhere(context)) break;
    failures.push(...(await tryToRemove(context, left)));
  }
  throwAny(failures);
}

function throwAny(failures: readonly unknown[]): void {
  if (failures.length > 1) throw new AggregateError(failures, `${failures.length} files could not be removed`);
  if (failures.length > 0) throw failures[0];
}

/**
 * Removes the files with one sync and one commit for all, and rejects when these fail. Resolves to the failures of
 * single files: the other files are removed all the same.
 */
async function tryToRemove(context: Rows & LocalFiles & Host, files: readonly GoneFile[]): Promise<readonly unknown[]> {
  const { fileState, metadata } = context;
  const isThere = (gone: GoneFile) => metadata.gone.has(gone) && !isElsewhere(context);
  if (!files.some(isThere)) return [];
  const failures: unknown[] = [];
  const removed: GoneFile[] = [];
  try {
    await context.syncRows();
    for (const gone of files) {
      if (!isThere(gone)) continue;
      await removeFile(context, gone).then(
        () => removed.push(gone),
        (error: unknown) => failures.push(error),
      );
    }
    metadata.transaction(() => {
      for (const gone of removed) metadata.gone.remove(gone);
    });
  } catch (error) {
    fileState.isLeft = true;
    throw error;
  }
  if (failures.length > 0) fileState.isLeft = true;
  return failures;
}

/** True: the state dir is gone. Its path may lead to another mount's files, which have the same numbers. */
function isElsewhere({ disk }: Needs): boolean {
  disk.lookForFolder();
  return disk.trouble === "gone";
}

async function removeFile(context: Rows & LocalFiles & Host, gone: GoneFile): Promise<void> {
  const { runtime, paths } = context;
  if (gone.kind === "live") logClean(context, gone.id);
  await runtime.files.remove(gone.kind === "live" ? paths.cacheFile(gone.id) : paths.snapshot(gone.id));
  runtime.step("gone: file removed");
}
