/** Core files contain the memory of a process that died, readable by everyone who finds the file. */
import { loadAddon } from "./addon.ts";

/**
 * This process and its children write no core files, because tokens and keys would be in them. Only the soft limit is
 * set, so that a developer who looks for a fault can raise it again (prlimit(1)).
 */
export function forbidCore(): void {
  const { forbidCore: forbid } = loadAddon(["forbidCore"]) as { forbidCore(): void };
  forbid();
}
