/** Tells when another token is in use than before: what the one before lacked the new one may have. */
import type { Credentials } from "../client/credentials.ts";

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
