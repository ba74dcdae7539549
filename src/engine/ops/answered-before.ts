/** Answers a resent request that an earlier daemon carried out. */

import { type Done, FsError, type KeptHandle, type Opened } from "../api/index.ts";
import type { Host, Kernel, LocalFiles, Remote, Rows } from "../core/index.ts";
import type { Tree } from "../tree/index.ts";
import type { Outgoing } from "../upload/index.ts";
import { openMade } from "./create.ts";
import type { Prefetch } from "./prefetch.ts";

export function answeredBefore(
  context: Rows & LocalFiles & Kernel & Remote & Host & Tree & Outgoing & Prefetch,
  request: number,
): Done | undefined {
  const row = context.metadata.done.of(request);
  const kept = context.handleTable.openedBy(request);
  const handle = kept === undefined ? undefined : context.handles.get(kept.id);
  if (row === undefined && handle === undefined) return undefined;
  const made = () => {
    const kernelNodeId = row === undefined ? kept?.kernelNodeId : row.kernelNodeId;
    if (kernelNodeId === undefined) throw new FsError("EIO", `request ${request} made no node`);
    return context.requirements.inode(kernelNodeId);
  };
  const opened = kept === undefined || handle === undefined ? undefined : openedAs(kept);
  return {
    found: async () => context.stats.found(made()),
    opened,
    async openMade(caller, flags) {
      if (opened === undefined) return openMade(context, caller, made(), flags);
      return { ...(await context.stats.found(made())), ...opened };
    },
  };
}

/** It is not known whether the earlier daemon let the kernel keep its pages, so the kernel keeps none. */
function openedAs({ id, kind, write, backing }: KeptHandle): Opened {
  if (kind === "folder") return { handle: id, keepCache: false };
  return { handle: id, keepCache: false, noFlush: !write, ...(backing === undefined ? {} : { backing }) };
}
