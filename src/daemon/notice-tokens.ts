/** Notices when another token is in use than before: the new one may permit what the old one did not. */
import type { Credentials } from "../client/credentials.ts";
import { type Clock, every } from "../lib/runtime.ts";

/** A token file with another token is noticed within this time, also while no request needs a token. */
const LOOK_MS = 2_000;

export function noticeTokens(credentials: Credentials, onChange: (token: string) => void): Credentials {
  let current: string | undefined;
  const note = (token: string): string => {
    const isOther = current !== undefined && current !== token;
    current = token;
    if (isOther) onChange(token);
    return token;
  };
  return {
    token: async () => note(await credentials.token()),
    async renew(rejected) {
      const token = await credentials.renew(rejected);
      return token === undefined ? undefined : note(token);
    },
  };
}

/**
 * Asks `credentials` regularly for the token in use (for a token file, that is a look at its times). The returned
 * function ends this.
 */
export function watchTokens(
  credentials: Pick<Credentials, "token">,
  clock: Pick<Clock, "elapsed" | "setTimer">,
): () => void {
  // A token that cannot be read is reported to the request that needs it.
  const look = () => void credentials.token().catch(() => {});
  return every(clock, LOOK_MS, look).cancel;
}
