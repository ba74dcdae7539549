/**
 * The users and groups of this machine, by getent(1): it knows those of directory services too, which the files in /etc
 * do not. It is a child process, because a directory may be slow, and what it reads may lie in the mount, which waits
 * for this process. What it said is remembered: programs wait for the first answer about an account alone.
 */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { LRUCache } from "lru-cache";
import type { Logger } from "../lib/log.ts";
import type { AccountKind, Accounts } from "../vfs/accounts.ts";

const run = promisify(execFile);

/** An answer that is older is given once more, and asked for again. */
const FRESH_MS = 60_000;
/** After a failure. */
const AGAIN_MS = 10_000;
const LIMIT_MS = 10_000;
const ACCOUNTS_MAX = 10_000;

const DATABASES = { user: "passwd", group: "group" } as const;
/** Where it is found: PATH may lead into the mount. */
const ENVIRONMENT = { PATH: "/usr/bin:/bin:/run/current-system/sw/bin" };
const NOT_FOUND = 2;

/** Undefined: there is no such account. */
export type AskAccount = (
  kind: AccountKind,
  key: string,
  signal: AbortSignal,
) => Promise<{ readonly name: string; readonly number: number } | undefined>;

export interface AccountsOptions {
  readonly log: Logger;
  /** Something that was answered is not so any more. */
  readonly onChange: () => void;
  readonly ask?: AskAccount;
}

interface Answer {
  readonly is: string | number | undefined;
  readonly failed?: true;
}

export function createAccounts({ log, onChange, ask = getent }: AccountsOptions): Accounts & { close(): void } {
  const ended = new AbortController();
  const answers = new LRUCache<string, Answer>({
    max: ACCOUNTS_MAX,
    ttl: FRESH_MS,
    allowStale: true,
    async fetchMethod(question, before, { options }) {
      const [kind, by, ...rest] = question.split(":") as [AccountKind, "name" | "number", ...string[]];
      const key = rest.join(":");
      try {
        const found = await ask(kind, key, ended.signal);
        // A name of digits alone is taken for a number.
        const isIt = found !== undefined && String(found[by]) === key;
        const answer: Answer = { is: isIt ? found[by === "name" ? "number" : "name"] : undefined };
        if (before !== undefined && before.is !== answer.is) onChange();
        return answer;
      } catch (error) {
        if (!ended.signal.aborted) log.warn({ err: error, kind, key }, "an account could not be looked up");
        options.ttl = AGAIN_MS;
        return before ?? { is: undefined, failed: true };
      }
    },
  });

  async function answerTo(kind: AccountKind, by: "name" | "number", key: string): Promise<Answer["is"]> {
    const answer = await answers.fetch(`${kind}:${by}:${key}`);
    if (answer === undefined || answer.failed === true) throw new Error(`${kind} ${key} could not be looked up`);
    return answer.is;
  }

  return {
    numberOf: async (kind, name) => (await answerTo(kind, "name", name)) as number | undefined,
    nameOf: async (kind, number) => (await answerTo(kind, "number", String(number))) as string | undefined,
    close: () => ended.abort(),
  };
}

export async function getent(
  kind: AccountKind,
  key: string,
  signal: AbortSignal,
): Promise<{ name: string; number: number } | undefined> {
  const options = { cwd: "/", env: ENVIRONMENT, timeout: LIMIT_MS, killSignal: "SIGKILL", signal } as const;
  try {
    const { stdout } = await run("getent", [DATABASES[kind], "--", key], options);
    const [name = "", , number] = stdout.split("\n", 1)[0]?.split(":") ?? [];
    if (name === "" || !/^\d+$/.test(number ?? "")) throw new Error(`getent said "${stdout.trimEnd()}"`);
    return { name, number: Number(number) };
  } catch (error) {
    if ((error as { code?: unknown }).code === NOT_FOUND) return undefined;
    throw error;
  }
}
