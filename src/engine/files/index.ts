/**
 * Cache files: opened, fetched, written, made durable, evicted; passthrough and the fast path; what the kernel forgot.
 * Other rooms ask the services that `addLocalFiles` puts into the context (core/cache-file.ts, core/file-services.ts).
 */
export { addLocalFiles } from "./add-local-files.ts";
export { type Backlog, createBacklog } from "./backlog.ts";
export { SMALL } from "./fetch.ts";
