/** The calls of programs, bound to FileSystem; and the commands drain, queue and retry. */
export { drain } from "./drain.ts";
export { createNameDropping } from "./drop-names.ts";
export { createFileSystem } from "./file-system.ts";
export { createPrefetch, type Prefetch } from "./prefetch.ts";
export { createTreePrefetch } from "./prefetch-tree.ts";
export { listQueue, pausedKinds } from "./queue-list.ts";
export { retryNow } from "./retry.ts";
