/**
 * Cache files: opened, fetched, written, made durable, evicted; passthrough and the fast path; FORGET. Other rooms use
 * the services that `addLocalFiles` adds to the context (core/cache-file.ts, core/file-services.ts).
 */
export { addLocalFiles } from "./add-local-files.ts";
export { type Backlog, createBacklog } from "./backlog.ts";
export { SMALL } from "./fetch.ts";
