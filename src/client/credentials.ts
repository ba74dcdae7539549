/**
 * Sources of access tokens: one fixed token, or a file that another program keeps fresh. A token never appears in an
 * error or a log.
 */
import { readFile, stat } from "node:fs/promises";
import { checkArguments, filledText } from "./checks.ts";
import { RemoteError } from "./errors.ts";

/** The source of the client's tokens. Both methods reject with a RemoteError "unauthorized" when there is no token. */
export interface Credentials {
  /** The token to send now. */
  token(): Promise<string>;
  /** Called when the gateway refused `rejected` (401). Resolves with a different token. Undefined: there is none. */
  renew(rejected: string): Promise<string | undefined>;
}

/** A bearer token has visible characters only, so it cannot end its header. */
const TOKEN = /^[\x21-\x7e]+$/;

/** The time for which a token file is trusted without another look. A 401 causes a look at once. */
const FILE_CHECK_MILLISECONDS = 1000;

/** A token that never changes. Throws a RemoteError "unauthorized" when it cannot be a token. */
export function staticToken(token: string): Credentials {
  const checked = checkToken(token, "token");
  return { token: async () => checked, renew: async () => undefined };
}

/**
 * The token in a file: one line, without the white space around it. It is read again when the file's modification time,
 * size or inode changes (noticed within a second), and after a 401. An empty file is being rewritten: the former token
 * stays in use. Throws a TypeError for a wrong argument.
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
      // The identity was taken before the file was read, so the next look notices a write in between.
      identity = seen;
    }
    checkedAt = performance.now();
  };
  const refresh = async (isForced: boolean) => {
    // A look that began before the 401 may have read an older file.
    if (isForced) await reading?.catch(() => {});
    reading ??= look(isForced)
      .catch((cause: unknown) => {
        // The state of the file is unknown now: it may be gone for good, or its token may still be valid.
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
      // Another call has met the same 401 and found a new token.
      if (current !== undefined && current !== rejected) return current;
      await refresh(true);
      const token = known();
      return token === rejected ? undefined : token;
    },
  };
}

/** Returns the token if it can be sent. Throws "unauthorized" with a message that does not show it. */
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
