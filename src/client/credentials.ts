/**
 * Where access tokens come from: one fixed token, or a file somebody else keeps fresh. Never puts a
 * token into an error or a log.
 */
import { readFile, stat } from "node:fs/promises";
import { checkArguments, filledText } from "./checks.ts";
import { RemoteError } from "./errors.ts";

/** What the client asks for tokens. Both reject with a RemoteError "unauthorized" when there is none. */
export interface Credentials {
  /** The token to send now. */
  token(): Promise<string>;
  /** The gateway refused `rejected` (401): a different token, or undefined when there is no other. */
  renew(rejected: string): Promise<string | undefined>;
}

/** What a bearer token may consist of here: anything visible, so that it cannot end its header. */
const TOKEN = /^[\x21-\x7e]+$/;

/** How long a token file is trusted without looking at it again. A 401 looks at once. */
const FILE_CHECK_MILLISECONDS = 1000;

/** A token that never changes. Throws as `token()` would when it is none. */
export function staticToken(token: string): Credentials {
  const checked = checkToken(token, "token");
  return { token: async () => checked, renew: async () => undefined };
}

/**
 * The token in a file: one line, white space around it ignored. Read again when its modification
 * time, size or inode changes (noticed within a second) and after a 401. An empty file is one being
 * rewritten: the token before stays in use.
 */
export function tokenFile(path: string): Credentials {
  checkArguments("tokenFile", { path: filledText }, [path]);
  let current: string | undefined;
  let identity = "";
  let checkedAt = Number.NEGATIVE_INFINITY;
  let reading: Promise<void> | undefined;

  const look = async (isForced: boolean) => {
    const status = await stat(path, { bigint: true });
    const seen = `${status.mtimeNs} ${status.size} ${status.ino}`;
    if (isForced || current === undefined || seen !== identity) {
      const text = (await readFile(path, "utf8")).trim();
      if (text !== "" || current === undefined) current = checkToken(text, `token file ${path}`);
      // Taken before reading: a write in between is seen by the next look.
      identity = seen;
    }
    checkedAt = performance.now();
  };
  const refresh = async (isForced: boolean) => {
    // A look that began before the 401 may not have seen the file as it is now.
    if (isForced) await reading?.catch(() => {});
    reading ??= look(isForced)
      .catch((cause: unknown) => {
        // Nothing is known of the file now: neither that it is gone for good nor that its token still stands.
        current = undefined;
        throw unauthorized(`token file ${path}`, cause);
      })
      .finally(() => {
        reading = undefined;
      });
    await reading;
  };
  const known = (): string => {
    if (current === undefined) throw new RemoteError("unauthorized", `token file ${path}: it holds no token`);
    return current;
  };

  return {
    async token() {
      if (current === undefined || performance.now() - checkedAt >= FILE_CHECK_MILLISECONDS) await refresh(false);
      return known();
    },
    async renew(rejected) {
      // Another call has met the same 401 and found a new one.
      if (current !== undefined && current !== rejected) return current;
      await refresh(true);
      const token = known();
      return token === rejected ? undefined : token;
    },
  };
}

/** The token, if it can be sent; else an error that says what is wrong without showing it. */
export function checkToken(token: unknown, source: string): string {
  if (typeof token === "string" && TOKEN.test(token)) return token;
  let got = "other characters";
  if (typeof token !== "string") got = token === null ? "null" : typeof token;
  else if (token === "") got = "nothing";
  else if (/\s/.test(token)) got = "several words or lines";
  throw new RemoteError("unauthorized", `${source}: expected one word of visible ASCII characters, got ${got}`);
}

function unauthorized(source: string, cause: unknown): RemoteError {
  if (cause instanceof RemoteError) return cause;
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new RemoteError("unauthorized", `${source}: ${reason}`, { cause });
}
