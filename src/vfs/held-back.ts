/** Why nothing at all is sent, whatever waits. */
import type { Context } from "./context.ts";

type Needs = Pick<Context, "readOnly" | "disk" | "network" | "runtime">;

/** In words for people; `at`: time of the rows at which it is over by itself. Undefined: what waits has its turn. */
export function heldBack(context: Needs): { readonly why: string; readonly at?: number } | undefined {
  const { network, runtime } = context;
  const why = heldBackUntilToldOtherwise(context);
  if (why !== undefined) return { why };
  if (network.pauseMs === 0) return undefined;
  return { why: "the gateway takes no more for now", at: runtime.now() + network.pauseMs };
}

/** The same but for what is over by itself. */
export function heldBackUntilToldOtherwise({ readOnly, disk, network }: Omit<Needs, "runtime">): string | undefined {
  if (readOnly.why !== undefined) return `the mount is read-only: ${readOnly.why}`;
  // An answer that cannot be written down would be asked for again and again.
  if (!disk.hasRows || disk.trouble === "readOnly") return disk.reason;
  if (network.doubt !== undefined) return network.doubt;
  if (network.loginNeeded !== undefined) return `login needed: ${network.loginNeeded}`;
  return network.isOnline ? undefined : "the gateway does not answer";
}
