/** Why a change stays here although the gateway did not refuse it. */

/** Its content may be half-written; see power-loss.ts. */
export const HELD_BECAUSE =
  'held: being written when the machine went down; save it again, or "wsfs queue retry" sends it as it is';
