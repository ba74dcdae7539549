/** Core files: what a process had in memory when it died, for whoever finds them. */
import { loadAddon } from "./addon.ts";

/**
 * This process and those it starts leave none: tokens and keys would be in it. Only the soft limit is set, so who looks
 * for a fault may raise it again (prlimit(1)).
 */
export function forbidCore(): void {
  const { forbidCore: forbid } = loadAddon(["forbidCore"]) as { forbidCore(): void };
  forbid();
}
