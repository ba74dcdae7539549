/**
 * The users and groups of this machine. Local accounts are read from the files in /etc. Accounts of a directory service
 * come from getent(1), a child process: a directory may be slow, and getent may read files in the mount that this
 * process serves. Answers are remembered: a program waits only for the first answer about an account.
 */
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { LRUCache } from "lru-cache";
import type { AccountKind, Accounts } from "../engine/api/index.ts";
import { type ElapsedTime, millisecondsOf, plus } from "../lib/clocks.ts";
import type { Logger } from "../lib/log.ts";
import type { Clock } from "../lib/runtime.ts";
import { safeToKill } from "../lib/safe-to-kill.ts";
import { hasCode } from "../lib/system-error.ts";

const run = promisify(execFile);

/** An older answer is still given, and is refreshed meanwhile. */
const FRESH_MS = 60_000;
/** The pause after a failure, before the account is looked up again. */
const AGAIN_MS = 10_000;
const LIMIT_MS = 10_000;
const ACCOUNTS_MAX = 10_000;

const DATABASES = { user: "passwd", group: "group" } as const;
/** The search path of getent. The PATH of the user who mounts may lead into the mount. */
const ENVIRONMENT = { PATH: "/usr/bin:/bin:/run/current-system/sw/bin" };
const NOT_FOUND = 2;

/** Fields of a line in both databases: name, password, number, … */
const FIELDS = { name: 0, number: 2 } as const;
type Field = keyof typeof FIELDS;

/** Finds the line of the database for the account with this name or number. Undefined: there is no such account. */
export type FindAccount = (
  kind: AccountKind,
  by: Field,
  key: string,
  signal: AbortSignal,
) => Promise<string | undefined>;

type AskDirectory = (database: string, key: string, signal: AbortSignal) => Promise<string | undefined>;

interface AccountsOptions {
  readonly log: Logger;
  /** Called when an account has changed since it was answered. */
  readonly onChange: () => void;
  readonly elapsed: Clock["elapsed"];
  readonly find?: FindAccount;
}

interface Answer {
  /** The other field of the account: its name, or its number. Undefined: there is no such account. */
  readonly is: string | undefined;
  readonly failed?: true;
}

export function createAccounts(options: AccountsOptions): Accounts & { close(): void } {
  const { log, onChange, elapsed, find = createFind(elapsed) } = options;
  const ended = new AbortController();
  const answers = new LRUCache<string, Answer, Question>({
    max: ACCOUNTS_MAX,
    ttl: FRESH_MS,
    perf: { now: () => millisecondsOf(elapsed()) },
    ttlResolution: 0,
    allowStale: true,
    async fetchMethod(_, before, { options: kept, context: { kind, by, key } }) {
      try {
        const is = otherField(by, key, await find(kind, by, key, ended.signal));
        if (before !== undefined && (before.failed === true || before.is !== is)) onChange();
        return { is };
      } catch (error) {
        if (!ended.signal.aborted) log.warn({ err: error, kind, key }, "an account could not be looked up");
        kept.ttl = AGAIN_MS;
        return before ?? { is: undefined, failed: true };
      }
    },
  });

  async function answerTo(question: Question): Promise<string | undefined> {
    const { kind, by, key } = question;
    const answer = await answers.fetch(`${kind} ${by} ${key}`, { context: question });
    if (answer === undefined || answer.failed === true) throw new Error(`${kind} ${key} could not be looked up`);
    return answer.is;
  }

  return {
    async numberOf(kind, name) {
      const number = await answerTo({ kind, by: "name", key: name });
      return number === undefined ? undefined : Number(number);
    },
    nameOf: (kind, number) => answerTo({ kind, by: "number", key: String(number) }),
    close: () => ended.abort(),
  };
}

/** The number beside the name `key`, or the name beside that number. */
function otherField(by: Field, key: string, line = ""): string | undefined {
  const fields = line.split(":");
  const { [FIELDS.name]: name = "", [FIELDS.number]: number = "" } = fields;
  // getent takes a name of digits for a number. Special lines ("+::::::") have no name.
  const isIt = fields[FIELDS[by]] === key && name !== "" && /^\d+$/.test(number);
  if (!isIt) return undefined;
  return by === "name" ? number : name;
}

interface Question {
  readonly kind: AccountKind;
  readonly by: Field;
  readonly key: string;
}

/** `askDirectory` is asked for accounts that the files in /etc do not have. */
export function createFind(elapsed: Clock["elapsed"], askDirectory: AskDirectory = getent): FindAccount {
  let silentUntil: ElapsedTime | undefined;
  return async (kind, by, key, signal) => {
    const database = DATABASES[kind];
    const lines = (await readFile(`/etc/${database}`, "utf8").catch(() => "")).split("\n");
    const line = lines.find((each) => each.split(":")[FIELDS[by]] === key);
    if (line !== undefined) return line;
    // A listing waits once for a directory that hangs, not once for each owner in the listing.
    if (silentUntil !== undefined && elapsed() < silentUntil)
      throw new Error("accounts could not be asked for a moment ago");
    try {
      return await askDirectory(database, key, signal);
    } catch (error) {
      silentUntil = plus(elapsed(), AGAIN_MS);
      throw error;
    }
  };
}

async function getent(database: string, key: string, signal: AbortSignal): Promise<string | undefined> {
  if (key.includes("\0")) return undefined;
  const options = { cwd: "/", env: ENVIRONMENT, timeout: LIMIT_MS, killSignal: "SIGKILL", signal } as const;
  try {
    const asked = run("getent", [database, "--", key], options);
    safeToKill(asked.child);
    return (await asked).stdout.split("\n", 1)[0];
  } catch (error) {
    const { code } = error as { code?: unknown };
    // Without getent there are only the accounts of the files.
    if (code === NOT_FOUND || hasCode(error, "ENOENT")) return undefined;
    throw error;
  }
}
