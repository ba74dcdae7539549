/** `wsfs gateway user …` and `wsfs gateway grant …`: the accounts of a local gateway, whether it runs or not. */
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { createInterface } from "node:readline";
import { Writable } from "node:stream";
import { text } from "node:stream/consumers";
import { forbidCore } from "../lib/core-file.ts";
import { EXIT, Failure } from "./failure.ts";
import type { Values } from "./options.ts";
import { printable } from "./wording.ts";
import { absolute } from "./working-folder.ts";

type AccountStore = import("../gateway/accounts/index.ts").AccountStore;
type Account = import("../gateway/accounts/index.ts").Account;

export async function userAdd(values: Values<"gateway user add">): Promise<number> {
  if (values.outside && values.generate)
    throw new Failure("--outside and --generate exclude each other: such an account has no password", EXIT.usage);
  return withAccounts(values.data, async ({ accounts }) => {
    const { NAME: name } = values.positionals;
    if (values.outside) {
      await accounts.add(name, null);
      process.stdout.write(
        `There is an account ${name}, for the first person who signs in at the gateway's --issuer under this name\n`,
      );
      return EXIT.ok;
    }
    const password = values.generate ? generated() : await askNew(name);
    const account = await accounts.add(name, password);
    process.stdout.write(values.generate ? `${password}\n` : `There is an account ${account.name}\n`);
    if (values.generate) process.stderr.write(`There is an account ${account.name}; its password is above\n`);
    return EXIT.ok;
  });
}

export async function userPassword(values: Values<"gateway user password">): Promise<number> {
  return withAccounts(values.data, async (store) => {
    const account = required(store, values.positionals.NAME);
    const password = values.generate ? generated() : await askNew(account.name);
    const first = store.firstPassword();
    await store.accounts.setPassword(account.id, password);
    if (values.generate) process.stdout.write(`${password}\n`);
    process.stderr.write(`${account.name} has a new password; all logins of the account have ended\n`);
    if (first?.account === account.name) process.stderr.write(`${first.file} had the old one, and was removed\n`);
    return EXIT.ok;
  });
}

export async function userRemove(values: Values<"gateway user remove">): Promise<number> {
  return withAccounts(values.data, async (store) => {
    const account = required(store, values.positionals.NAME);
    store.accounts.remove(account.id);
    process.stdout.write(`There is no account ${account.name} any more; its logins and roles have ended\n`);
    return EXIT.ok;
  });
}

export async function userList(values: Values<"gateway user list">): Promise<number> {
  return withAccounts(values.data, async ({ accounts }, workspaces) => {
    const all = accounts.list().map(({ id, name, createdAt }) => ({
      name,
      createdAt: new Date(createdAt).toISOString(),
      roles: accounts
        .memberships({ account: id })
        .map(({ workspace, role }) => ({ workspace: workspaces.get(workspace) ?? workspace, role })),
    }));
    if (values.json) process.stdout.write(all.map((one) => `${JSON.stringify(one)}\n`).join(""));
    else if (all.length === 0) process.stdout.write("There are no accounts. wsfs gateway user add makes one.\n");
    else {
      const width = Math.max(...all.map(({ name }) => name.length));
      const roles = (one: (typeof all)[number]) =>
        one.roles.map(({ workspace, role }) => `${role} of ${printable(workspace)}`).join(", ") || "no role anywhere";
      process.stdout.write(all.map((one) => `${one.name.padEnd(width)}  ${roles(one)}\n`).join(""));
    }
    return EXIT.ok;
  });
}

export async function grantSet(values: Values<"gateway grant set">): Promise<number> {
  return withAccounts(values.data, async (store, workspaces) => {
    const account = required(store, values.positionals.NAME);
    const [id, name] = workspaceOf(workspaces, values.workspace);
    store.accounts.setRole(account.id, id, values.role);
    process.stdout.write(`${account.name} is ${values.role} of ${printable(name)}\n`);
    return EXIT.ok;
  });
}

export async function grantRemove(values: Values<"gateway grant remove">): Promise<number> {
  return withAccounts(values.data, async (store, workspaces) => {
    const account = required(store, values.positionals.NAME);
    const [id, name] = workspaceOf(workspaces, values.workspace);
    const had = store.accounts.removeRole(account.id, id);
    const is = had ? "has no access any more to" : "had no role in";
    process.stdout.write(`${account.name} ${is} ${printable(name)}\n`);
    return EXIT.ok;
  });
}

/** Opens the accounts in a gateway's folder for a command. Rejects with a Failure. */
export async function withAccounts(
  given: string,
  work: (store: AccountStore, workspaces: ReadonlyMap<string, string>) => Promise<number>,
): Promise<number> {
  forbidCore();
  const data = absolute(given);
  const { databasePath } = await import("../gateway/data-folder.ts");
  if (!existsSync(databasePath(data))) {
    throw new Failure(`--data: ${given} is no folder of a gateway; "wsfs gateway --data ${given}" makes one`);
  }
  const { workspacesIn } = await import("../gateway/start.ts");
  const { AccountError, EngineError, openAccounts } = await import("../gateway/accounts/index.ts");
  const { systemClock } = await import("../lib/system-clock.ts");
  const store = openAccounts(data, systemClock);
  try {
    return await work(store, new Map(workspacesIn(data).map(({ id, name }) => [id, name])));
  } catch (cause) {
    if (cause instanceof AccountError || cause instanceof EngineError)
      throw new Failure(cause.message, EXIT.failure, { cause });
    throw cause;
  } finally {
    store.close();
  }
}

function required({ accounts }: AccountStore, name: string): Account {
  const account = accounts.find(name);
  if (account !== undefined) return account;
  const names = accounts.list().map((one) => one.name);
  throw new Failure(`there is no account ${name}; there ${namesAre(names)}`);
}

function workspaceOf(workspaces: ReadonlyMap<string, string>, asked: string): readonly [string, string] {
  const found = [...workspaces].find(([id, name]) => id === asked || name === asked);
  if (found !== undefined) return found;
  throw new Failure(`--workspace: there is no workspace "${asked}"; there ${namesAre([...workspaces.values()])}`);
}

function namesAre(names: readonly string[]): string {
  if (names.length === 0) return "is none";
  return `${names.length === 1 ? "is" : "are"} ${names.map(printable).join(", ")}`;
}

const generated = () => randomBytes(15).toString("base64url");

/**
 * On a terminal it asks twice, without echo. Otherwise it reads one line of standard input. A password is never an
 * argument, because other users can see arguments.
 */
async function askNew(name: string): Promise<string> {
  if (!process.stdin.isTTY) return (await text(process.stdin)).split(/\r?\n/, 1).join("");
  const password = await askUnseen(`New password for ${name}: `);
  if ((await askUnseen("Once more: ")) !== password) throw new Failure("the two passwords differ; nothing was changed");
  return password;
}

function askUnseen(question: string): Promise<string> {
  process.stderr.write(question);
  const unseen = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input: process.stdin, output: unseen, terminal: true });
  return new Promise((resolve, reject) => {
    lines.once("SIGINT", () => {
      lines.close();
      reject(new Failure("given up; nothing was changed"));
    });
    lines.question("", (answer) => {
      lines.close();
      process.stderr.write("\n");
      resolve(answer);
    });
  });
}
