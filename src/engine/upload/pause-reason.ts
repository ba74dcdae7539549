/** Why nothing at all is sent, whatever waits. */
import type { Host, LocalFiles, Remote } from "../core/index.ts";

type Needs = Pick<LocalFiles & Remote & Host, "readOnly" | "disk" | "network" | "settings" | "runtime">;

/** In words for people; `at`: time of the rows at which it is over by itself. Undefined: what waits has its turn. */
export function pauseReason(context: Needs): { readonly why: string; readonly at?: number } | undefined {
  const { network, runtime } = context;
  const why = openEndedPauseReason(context);
  if (why !== undefined) return { why };
  const pauseMs = network.pauseMs("changes");
  return pauseMs === 0 ? undefined : { why: "the gateway takes no more for now", at: runtime.now() + pauseMs };
}

/** The same but for what is over by itself. */
export function openEndedPauseReason(context: Omit<Needs, "runtime">): string | undefined {
  const { readOnly, disk, network } = context;
  if (readOnly.why !== undefined) return `the mount is read-only: ${readOnly.why}`;
  // An answer that cannot be written down would be asked for again and again.
  if (!disk.hasRows || disk.trouble === "readOnly") return disk.reason;
  if (network.doubt !== undefined) return network.doubt;
  const login = loginNeeded(context);
  if (login !== undefined) return login;
  return network.isOnline ? undefined : "the gateway does not answer";
}

/** The gateway refuses the token, or there is none: what a person can do about it, and what was said. */
export function loginNeeded({ network, settings }: Pick<Needs, "network" | "settings">): string | undefined {
  if (network.loginNeeded === undefined) return undefined;
  const { howToLogIn: advice } = settings;
  // A saved login that has ended says it itself.
  const isSaid = advice === undefined || network.loginNeeded.includes(advice);
  return `login needed${isSaid ? "" : ` (${advice})`}: ${network.loginNeeded}`;
}
