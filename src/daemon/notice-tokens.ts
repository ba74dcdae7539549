/** Tells when another token is in use than before: what the one before lacked the new one may have. */
import type { Credentials } from "../client/credentials.ts";
import { type Clock, every } from "../lib/runtime.ts";

/** A file that holds another token is noticed after this, also while nobody asks the gateway for anything. */
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

/** Has `credentials` (a file: a look at its times) say now and then which token is in use. Ends with what it returns. */
export function watchTokens(
  credentials: Pick<Credentials, "token">,
  clock: Pick<Clock, "elapsed" | "setTimer">,
): () => void {
  // One that cannot be read, who needs it hears of.
  const look = () => void credentials.token().catch(() => {});
  return every(clock, LOOK_MS, look).cancel;
}
