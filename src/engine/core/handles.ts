/** Gives out a handle: it is written to the handle table first, and known here after that. */

import type { Caller, HandleId, KernelNodeId } from "../api/index.ts";
import type { Handle, Host, Kernel } from "./context.ts";

export function addHandle(context: Kernel & Host, caller: Caller, lineage: KernelNodeId, handle: Handle): HandleId {
  const isFile = handle.kind === "file";
  const id = context.handleTable.add({
    request: caller.mark?.id ?? 0,
    lineage,
    kind: handle.kind,
    write: isFile && handle.write,
    append: isFile && handle.append,
    backing: (isFile && handle.live.backingId) || 0,
  });
  context.handles.set(id, handle);
  context.runtime.step("handle: written down");
  return id;
}
