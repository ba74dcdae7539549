/** The calls of programs, one file each, bound to FileSystem; and what commands ask of the queue. */
export { drain } from "./drain.ts";
export { createFileSystem } from "./file-system.ts";
export { createTreePrefetch } from "./prefetch-tree.ts";
export { listQueue, pausedKinds } from "./queue-list.ts";
export { retryNow } from "./retry.ts";
