/**
 * The journal is followed; and when the gateway does not know the position we have come to, its past
 * is another one than it was (its data were replaced by older ones): then everything that is known
 * is looked at again. What it lost meanwhile is taken for changed or deleted there, what is unsent
 * here stays so. Never undoes what a program did.
 */
import { RemoteError } from "../client/errors.ts";
import type { Context } from "./context.ts";
import { followOnce } from "./follow.ts";
import { relistKnown } from "./poll.ts";

export async function hearJournal(context: Context, signal: AbortSignal): Promise<boolean> {
  try {
    await relist(context, signal);
    return await followOnce(context, signal);
  } catch (error) {
    const isUnknown = error instanceof RemoteError && error.code === "invalid" && error.field === "after";
    if (!isUnknown) throw error;
    context.network.answered();
    context.log.warn({ err: error }, "the gateway's past is another one; all that is known is looked at again");
    await startOver(context, signal);
    return true;
  }
}

async function startOver({ client, metadata, workspace }: Context, signal: AbortSignal): Promise<void> {
  const { asOf } = await client.readJournal(workspace.id, 0, { pageSize: 1, signal });
  metadata.transaction(() => {
    metadata.recount();
    metadata.settings.set("cursor", String(asOf));
    metadata.settings.set("indexed", "0");
    metadata.settings.set("written", "0");
    metadata.settings.set("relist", "0");
  });
}

/** Folders in which anything is known, in turn; where it was broken off, also by a crash, it goes on. */
async function relist(context: Context, signal: AbortSignal): Promise<void> {
  const { inodes, settings } = context.metadata;
  for (let reached = settings.get("relist") ?? ""; reached !== ""; ) {
    const folder = inodes.knownFolderAfter(Number(reached));
    if (folder !== undefined) await relistKnown(context, folder, signal);
    if (signal.aborted) return;
    reached = String(folder ?? "");
    settings.set("relist", reached);
  }
}
