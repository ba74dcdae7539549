/**
 * The keyring of this user's session (the Secret Service of GNOME, KDE and others): secrets by name. Each request is a
 * process of its own (keyring-process.ts), because the library blocks its thread while it waits for the service or for
 * a person to unlock it.
 */
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { safeToKill } from "../lib/safe-to-kill.ts";
import { RemoteError } from "./errors.ts";
import type { KeyringRequest } from "./keyring-process.ts";

export interface Keyring {
  /** Undefined: the keyring has no secret of that name. */
  get(name: string): Promise<string | undefined>;
  /** Resolves when the secret is stored. */
  set(name: string, secret: string): Promise<void>;
  remove(name: string): Promise<void>;
}

const PROGRAM = fileURLToPath(new URL("../client/keyring-process.js", import.meta.url));
/** Enough for a person to type the keyring's password, and less than the age at which a login's lock is removed. */
const LIMIT_MS = 25_000;
/** After a failure no new request is made for a while, because a mount asks whenever it needs a token. */
const AGAIN_MS = 15_000;

const answer = z.union([z.strictObject({ secret: z.string().nullable() }), z.strictObject({ error: z.string() })]);

/** Every method rejects with a RemoteError "unauthorized" when no keyring answers. */
export function systemKeyring(): Keyring {
  let failed: { readonly error: RemoteError; readonly at: number } | undefined;

  async function ask(request: KeyringRequest): Promise<string | null> {
    if (failed !== undefined && performance.now() - failed.at < AGAIN_MS) throw failed.error;
    failed = undefined;
    try {
      return await answerOf(request);
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause);
      const error = new RemoteError("unauthorized", `the system keyring does not answer: ${why}`, { cause });
      failed = { error, at: performance.now() };
      throw error;
    }
  }

  return {
    get: async (name) => (await ask({ is: "get", name })) ?? undefined,
    set: async (name, secret) => void (await ask({ is: "set", name, secret })),
    remove: async (name) => void (await ask({ is: "remove", name })),
  };
}

/**
 * The secret goes only through pipes: all users can read the arguments of a process, and this user's processes its
 * environment.
 */
async function answerOf(request: KeyringRequest): Promise<string | null> {
  const child = safeToKill(
    spawn(process.execPath, [PROGRAM], {
      cwd: "/",
      stdio: ["pipe", "pipe", "ignore"],
      timeout: LIMIT_MS,
      killSignal: "SIGKILL",
    }),
  );
  const ended = new Promise<void>((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code, signal) => {
      if (code === 0) resolve();
      else reject(new Error(signal === null ? "the keyring library failed" : `nothing within ${LIMIT_MS / 1000} s`));
    });
  });
  ended.catch(() => {});
  // Without a process there are no pipes, and its error comes with the event.
  if (child.pid === undefined) return ended.then(() => null);
  // If the child is gone, its exit is the error.
  child.stdin.on("error", () => {}).end(JSON.stringify(request));
  let text = "";
  for await (const chunk of child.stdout.setEncoding("utf8")) text += String(chunk);
  await ended;
  const read = answer.parse(JSON.parse(text));
  if ("error" in read) throw new Error(read.error);
  return read.secret;
}
