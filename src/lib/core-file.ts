/** Core files contain the memory of a process that died, for any reader of the file. */
import { loadAddon } from "./addon.ts";

/**
 * Forbids core files for this process and its children, because tokens and keys would be in them. Only the soft limit
 * is set, so that a developer can raise it again (prlimit(1)) to look for a fault.
 */
export function forbidCore(): void {
  const { forbidCore: forbid } = loadAddon(["forbidCore"]) as { forbidCore(): void };
  forbid();
}
