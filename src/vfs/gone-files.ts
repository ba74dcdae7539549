/**
 * Files whose rows have gone: removed once power loss can no longer bring the rows back. A row says so
 * until that is done, so that what a crash or a failing disk leaves of them is removed at the next
 * chance, and not set aside with what belongs to nobody known.
 */
import type { GoneFile } from "../metadata/gone-files.ts";
import { inBackground } from "./byte-state.ts";
import type { Context } from "./context.ts";
import { tellDone } from "./staged-files.ts";

type Needs = Pick<Context, "metadata" | "runtime" | "paths" | "staged" | "bytes" | "log" | "syncRows" | "disk">;

const SLICE = 100;

/** Within the transaction in which its row goes. */
export function removeSoon(context: Needs, gone: GoneFile): void {
  context.metadata.gone.add(gone);
  inBackground(context, `removing a ${gone.kind} file`, async () => {
    // After the caller's transaction, which may yet be undone.
    await undefined;
    await removeGone(context, gone);
  });
}

/** What was left by a crash, or could not be removed when its time was. */
export async function removeLeft(context: Needs): Promise<void> {
  const { metadata, bytes } = context;
  bytes.isLeft = false;
  const failures: unknown[] = [];
  for (let last: GoneFile | undefined; ; ) {
    const left = metadata.gone.some(SLICE, last);
    last = left.at(-1);
    if (last === undefined || bytes.stopped.signal.aborted || isElsewhere(context)) break;
    failures.push(...(await tryToRemove(context, left)));
  }
  if (failures.length > 0) throw failures[0];
}

async function removeGone(context: Needs, gone: GoneFile): Promise<void> {
  const [failure] = await tryToRemove(context, [gone]);
  if (failure !== undefined) throw failure;
}

/** With one sync for all; rejects when that fails. Resolves to why some could not be removed: they keep no other from it. */
async function tryToRemove(context: Needs, files: readonly GoneFile[]): Promise<readonly unknown[]> {
  const { bytes, metadata } = context;
  const isThere = (gone: GoneFile) => metadata.gone.has(gone) && !isElsewhere(context);
  if (!files.some(isThere)) return [];
  const failures: unknown[] = [];
  try {
    await context.syncRows();
  } catch (error) {
    bytes.isLeft = true;
    throw error;
  }
  for (const gone of files) {
    if (!isThere(gone)) continue;
    await removeFile(context, gone).catch((error: unknown) => {
      bytes.isLeft = true;
      failures.push(error);
    });
  }
  return failures;
}

/** The state dir has lost its name: what is found by it now, the same numbers too, is another mount's. */
function isElsewhere({ disk }: Needs): boolean {
  disk.lookForFolder();
  return disk.trouble === "gone";
}

async function removeFile(context: Needs, gone: GoneFile): Promise<void> {
  const { metadata, runtime, paths } = context;
  if (gone.kind === "live") tellDone(context, gone.id);
  await runtime.files.remove(gone.kind === "live" ? paths.live(gone.id) : paths.generation(gone.id));
  runtime.step("gone: file removed");
  metadata.gone.remove(gone);
}
