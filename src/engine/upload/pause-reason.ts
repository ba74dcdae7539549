/** The reasons for which nothing at all is sent. */
import { plus, type RowTime } from "../../lib/clocks.ts";
import type { Host, LocalFiles, Remote } from "../core/index.ts";

type Needs = Pick<LocalFiles & Remote & Host, "readOnly" | "disk" | "network" | "settings" | "runtime">;

/** In words for people. `at`: the row time at which the pause ends by itself. Undefined: rows are sent. */
export function pauseReason(context: Needs): { readonly why: string; readonly at?: RowTime } | undefined {
  const { network, runtime } = context;
  const why = openEndedPauseReason(context);
  if (why !== undefined) return { why };
  const pauseMs = network.pauseMs("changes");
  return pauseMs === 0 ? undefined : { why: "the gateway takes no more for now", at: plus(runtime.now(), pauseMs) };
}

/** The reason for which nothing is sent; undefined: rows are sent, or the pause ends by itself. */
export function openEndedPauseReason(context: Omit<Needs, "runtime">): string | undefined {
  const { readOnly, disk, network } = context;
  if (readOnly.why !== undefined) return `the mount is read-only: ${readOnly.why}`;
  // An answer that cannot be stored would be asked for again and again.
  if (!disk.hasRows || disk.trouble === "readOnly") return disk.reason;
  if (network.doubt !== undefined) return network.doubt;
  const login = loginNeeded(context);
  if (login !== undefined) return login;
  return network.isOnline ? undefined : "the gateway does not answer";
}

/** The refusal or the lack of a token, and the remedy, in words for people. Undefined: no login is needed. */
export function loginNeeded({ network, settings }: Pick<Needs, "network" | "settings">): string | undefined {
  if (network.loginNeeded === undefined) return undefined;
  const { howToLogIn: advice } = settings;
  // The text of a saved login that has ended contains the advice already.
  const isSaid = advice === undefined || network.loginNeeded.includes(advice);
  return `login needed${isSaid ? "" : ` (${advice})`}: ${network.loginNeeded}`;
}
