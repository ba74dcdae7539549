/**
 * Tokens that a program prints, such as a sign-in helper or a secret store. The program runs when a token is first
 * needed, before its token expires, and when the gateway refuses the token. Its output appears in no error and no log.
 */
import { type ExecFileException, execFile } from "node:child_process";
import { basename } from "node:path";
import type { Clock } from "../lib/runtime.ts";
import { systemClock } from "../lib/system-clock.ts";
import { checkArguments, fields, filledText, hasMethods, is, optional, wholeNumber } from "./checks.ts";
import { type Credentials, checkToken } from "./credentials.ts";
import { RemoteError } from "./errors.ts";
import { describeToken, replacementTime } from "./token-claims.ts";

export interface TokenCommandOptions {
  /** The time limit of the program, milliseconds. Default 60,000. */
  readonly timeoutMs?: number | undefined;
  /** Default: the environment of this process. */
  readonly env?: NodeJS.ProcessEnv | undefined;
  /** Time, for tests. */
  readonly clock?: Pick<Clock, "wallClock"> | undefined;
}

/** A program that prints expired tokens is not run more often than this. */
const PAUSE_MS = 1000;
/** A program that was told to end gets this long to do so. */
const END_MS = 1000;
const OUTPUT_BYTES_MAX = 64 * 1024;
const REASON_MAX = 200;

const ARGUMENTS = {
  command: filledText,
  args: is("a list of texts", (value) => Array.isArray(value) && value.every((item) => typeof item === "string")),
  options: fields<TokenCommandOptions>({
    timeoutMs: optional(wholeNumber(0)),
    env: optional(is("an object", (value) => typeof value === "object" && value !== null)),
    clock: optional(hasMethods("a clock", "wallClock")),
  }),
};

interface IssuedToken {
  readonly token: string;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
  readonly replaceAt: number;
}

/**
 * Runs `command` with `args`, without a shell. It prints only the token, or JSON with the token and its expiry:
 * `{"token", "expiresAt"}` (ISO 8601), or as in OAuth `{"access_token", "expires_in"}` (seconds). Without an expiry in
 * the output, that of the token's claims counts. The credentials reject with "unauthorized" when the program fails.
 * Throws a TypeError for wrong arguments.
 */
export function tokenCommand(
  command: string,
  args: readonly string[] = [],
  options: TokenCommandOptions = {},
): Credentials {
  checkArguments("tokenCommand", ARGUMENTS, [command, args, options]);
  const { clock = systemClock } = options;
  let current: IssuedToken | undefined;
  let running: Promise<IssuedToken> | undefined;

  const renewed = (): Promise<IssuedToken> => {
    running ??= run(command, args, options)
      .then((output) => {
        current = readOutput(output, `token command ${basename(command)}`, clock.wallClock());
        return current;
      })
      .finally(() => {
        running = undefined;
      });
    return running;
  };

  return {
    async token() {
      const now = clock.wallClock();
      if (current !== undefined && now < current.replaceAt) return current.token;
      try {
        return (await renewed()).token;
      } catch (error) {
        // The earlier token is still valid for a little longer.
        if (current !== undefined && clock.wallClock() < current.expiresAt) return current.token;
        throw error;
      }
    },
    async renew(rejected) {
      // Another call has met the same 401 and found a new token.
      if (current !== undefined && current.token !== rejected) return current.token;
      const { token } = await renewed();
      return token === rejected ? undefined : token;
    },
  };
}

function run(command: string, args: readonly string[], options: TokenCommandOptions): Promise<string> {
  const { timeoutMs = 60_000, env = process.env } = options;
  return new Promise((resolve, reject) => {
    const settings = { timeout: timeoutMs, env, maxBuffer: OUTPUT_BYTES_MAX, encoding: "utf8" } as const;
    const child = execFile(command, args, settings, (error, stdout, stderr) => {
      clearTimeout(end);
      if (error === null) resolve(stdout);
      else reject(failure(command, error, stderr, timeoutMs));
    });
    // All calls wait for the program, so one that ignores SIGTERM must be killed.
    const end = timeoutMs === 0 ? undefined : setTimeout(() => child.kill("SIGKILL"), timeoutMs + END_MS);
    // A program that asks a question would wait for an answer for ever.
    child.stdin?.on("error", () => {});
    child.stdin?.end();
  });
}

/** Node's own message would show the arguments. */
function failure(command: string, error: ExecFileException, stderr: string, timeoutMs: number): RemoteError {
  const { code, signal, killed } = error;
  let what = `ended with ${signal ?? `exit code ${code}`}`;
  if (code === "ERR_CHILD_PROCESS_STDIO_MAXBUFFER") what = `printed more than ${OUTPUT_BYTES_MAX} bytes`;
  else if (killed === true) what = `took longer than ${timeoutMs / 1000} s`;
  else if (typeof code === "string") what = `cannot be run (${code})`;
  const said =
    stderr
      .trim()
      .split("\n")
      .at(-1)
      ?.replace(/\p{Cc}+/gu, " ")
      .slice(0, REASON_MAX) ?? "";
  const message = `token command ${basename(command)}: it ${what}${said === "" ? "" : `: ${said}`}`;
  return new RemoteError("unauthorized", message, { isUnsent: true });
}

function readOutput(output: string, source: string, now: number): IssuedToken {
  const text = output.trim();
  const { token, expiresAt: expiry } = text.startsWith("{") ? readJson(text, source, now) : { token: text };
  const checked = checkToken(token, source);
  const expiresAt = expiry ?? describeToken(checked)?.expiresAt ?? Number.POSITIVE_INFINITY;
  const replaceAt = Math.max(replacementTime(now, expiresAt), now + PAUSE_MS);
  return { token: checked, expiresAt, replaceAt };
}

function readJson(text: string, source: string, now: number): { token: string; expiresAt: number | undefined } {
  const value = parse(text);
  const token = value?.token ?? value?.access_token;
  if (value === undefined || typeof token !== "string") {
    throw new RemoteError("unauthorized", `${source}: expected a token, or JSON with "token" or "access_token"`, {
      isUnsent: true,
    });
  }
  const { expiresAt, expires_in: seconds } = value;
  const expiry = typeof expiresAt === "string" ? Date.parse(expiresAt) : Number.NaN;
  if (expiresAt !== undefined && expiresAt !== null && Number.isNaN(expiry)) {
    throw new RemoteError("unauthorized", `${source}: expiresAt: expected a time in ISO 8601`, { isUnsent: true });
  }
  if (!Number.isNaN(expiry)) return { token, expiresAt: expiry };
  return { token, expiresAt: typeof seconds === "number" ? now + seconds * 1000 : undefined };
}

function parse(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}
