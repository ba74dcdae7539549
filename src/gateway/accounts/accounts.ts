/** Accounts and their roles in workspaces. Other processes may change them at any time, so nothing is cached. */
import { randomUUID } from "node:crypto";
import { ROLES, type Role } from "../../contract/roles.ts";
import { type Connection, SqliteError } from "../../lib/sqlite/index.ts";
import { isUuid } from "../../lib/uuid.ts";
import { hashPassword, isPassword, type PasswordCost } from "./passwords.ts";

export interface Account {
  readonly id: string;
  readonly name: string;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
}

export interface Membership {
  readonly account: Account;
  /** Id of the workspace. */
  readonly workspace: string;
  readonly role: Role;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
}

/** An account at an outside OpenID provider. */
interface OutsideIdentity {
  readonly issuer: string;
  readonly subject: string;
}

export interface Accounts {
  /**
   * Throws an AccountError when the name is taken or invalid, or the password is too short. Password null: the account
   * signs in elsewhere.
   */
  add(name: string, password: string | null): Promise<Account>;
  list(): Account[];
  find(nameOrId: string): Account | undefined;
  /** Removes the account with its roles and logins. False: there is none. */
  remove(id: string): boolean;
  /** Sets the password, and ends the account's logins. Rejects with an AccountError if the password is too short. */
  setPassword(id: string, password: string): Promise<void>;
  /** The account, if the password is right. Takes the same time when there is no such account. */
  checkPassword(name: string, password: string): Promise<Account | undefined>;
  /**
   * The account of an outside identity. `name` is the provider's name for the person. A new identity gets the account
   * that was added under that name without a password, if no identity has it yet; otherwise an account is made.
   */
  ofOutside(identity: OutsideIdentity, name: string): Account;
  /** True if `addFirstOwner` would make an account: there is no account, and it never made one. */
  lacksFirstOwner(): boolean;
  /** Makes an owner of these workspaces (ids). `name` is adapted to the rules. Undefined: an account was not needed. */
  addFirstOwner(name: string, password: string | null, workspaces: readonly string[]): Promise<Account | undefined>;
  /** Undefined: it was never made, or was removed. */
  firstOwner(): Account | undefined;
  /** Undefined: the account may not see the workspace. */
  role(account: string, workspace: string): Role | undefined;
  setRole(account: string, workspace: string, role: Role): void;
  /** False: it had no role. */
  removeRole(account: string, workspace: string): boolean;
  /** Ordered by the account's name, then by the workspace's id. A field that is undefined does not limit the list. */
  memberships(of: { readonly account?: string | undefined; readonly workspace?: string | undefined }): Membership[];
}

/** A request that cannot be fulfilled. The message is one line for a person. */
export class AccountError extends Error {
  override readonly name = "AccountError";
}

const NAME = /^[\p{L}\p{N}](?:[\p{L}\p{N}._@+-]{0,62}[\p{L}\p{N}])?$/u;

interface AccountRow {
  readonly id: string;
  readonly name: string;
  readonly createdAt: number;
  readonly password: string | null;
}

const COLUMNS = "id, name, created_at AS createdAt, password";
const shown = ({ id, name, createdAt }: AccountRow): Account => ({ id, name, createdAt });

/** The hooks are called in the transaction of the change that they belong to. */
interface AccountHooks {
  endLogins(account: string): void;
  /** Records that the first owner's given password is not its password any more. */
  forgetFirstPassword(): void;
}

export function createAccounts(
  database: Connection,
  clock: { wallClock(): number },
  cost: PasswordCost,
  { endLogins, forgetFirstPassword }: AccountHooks,
): Accounts {
  const insert = database.prepare(
    "INSERT INTO account (id, name, password, subject, created_at) VALUES (@id, @name, @password, @subject, @createdAt)",
  );
  const all = database.prepare<[], AccountRow>(`SELECT ${COLUMNS} FROM account ORDER BY name`);
  const byName = database.prepare<[string], AccountRow>(`SELECT ${COLUMNS} FROM account WHERE name = ?`);
  const byId = database.prepare<[string], AccountRow>(`SELECT ${COLUMNS} FROM account WHERE id = ?`);
  const bySubject = database.prepare<[string], AccountRow>(`SELECT ${COLUMNS} FROM account WHERE subject = ?`);
  const unclaimed = database.prepare<[string], AccountRow>(
    `SELECT ${COLUMNS} FROM account WHERE name = ? AND password IS NULL AND subject IS NULL`,
  );
  const claim = database.prepare("UPDATE account SET subject = ? WHERE id = ?");
  const setHash = database.prepare("UPDATE account SET password = ? WHERE id = ?");
  const removeRow = database.prepare("DELETE FROM account WHERE id = ?");
  const roleOf = database
    .prepare<[string, string], string>("SELECT role FROM membership WHERE account = ? AND workspace = ?")
    .pluck();
  const upsertRole = database.prepare(
    `INSERT INTO membership (account, workspace, role, created_at) VALUES (?, ?, ?, ?)
     ON CONFLICT (account, workspace) DO UPDATE SET role = excluded.role`,
  );
  const firstOwnerId = database.prepare<[], string>("SELECT account FROM first_owner").pluck();
  const setFirstOwner = database.prepare("INSERT INTO first_owner VALUES (?)");
  const deleteRole = database.prepare("DELETE FROM membership WHERE account = ? AND workspace = ?");
  const members = database.prepare<
    { account: string | null; workspace: string | null },
    AccountRow & { workspace: string; role: string; since: number }
  >(
    `SELECT a.id, a.name, a.created_at AS createdAt, a.password, m.workspace, m.role, m.created_at AS since
     FROM membership m JOIN account a ON a.id = m.account
     WHERE (:account IS NULL OR m.account = :account) AND (:workspace IS NULL OR m.workspace = :workspace)
     ORDER BY a.name, m.workspace`,
  );

  function insertAccount(name: string, password: string | null, subject: string | null): Account {
    const row = { id: randomUUID(), name, password, subject, createdAt: Math.floor(clock.wallClock()) };
    try {
      insert.run(row);
    } catch (error) {
      if (error instanceof SqliteError && error.code === "SQLITE_CONSTRAINT_UNIQUE") {
        throw new AccountError(`there is an account ${name} already`, { cause: error });
      }
      throw error;
    }
    return shown(row);
  }

  /** Ends everything that proved the account so far. */
  function retireProofs(id: string): void {
    endLogins(id);
    if (firstOwnerId.get() === id) forgetFirstPassword();
  }

  const lacksFirstOwner = () => firstOwnerId.get() === undefined && all.get() === undefined;

  return {
    async add(name, password) {
      checkName(name);
      if (byName.get(name) !== undefined) throw new AccountError(`there is an account ${name} already`);
      return insertAccount(name, await hashed(password, cost), null);
    },
    list: () => all.all().map(shown),
    find(nameOrId) {
      // The id is tried first, because an earlier release allowed a name that looks like an id.
      const row = byId.get(nameOrId) ?? byName.get(nameOrId);
      return row === undefined ? undefined : shown(row);
    },
    remove: (id) =>
      database
        .transaction(() => {
          retireProofs(id);
          return removeRow.run(id).changes > 0;
        })
        .immediate(),
    async setPassword(id, password) {
      const hash = await hashed(password, cost);
      database
        .transaction(() => {
          setHash.run(hash, id);
          retireProofs(id);
        })
        .immediate();
    },
    async checkPassword(name, password) {
      const row = byName.get(name);
      const isRight = await isPassword(password, row?.password ?? null, cost);
      return isRight && row !== undefined ? shown(row) : undefined;
    },
    ofOutside({ issuer, subject }, name) {
      const key = `${issuer} ${subject}`;
      return database
        .transaction(() => {
          const row = bySubject.get(key);
          if (row !== undefined) return shown(row);
          const kept = unclaimed.get(name);
          if (kept !== undefined) {
            claim.run(key, kept.id);
            return shown(kept);
          }
          return insertAccount(
            freeName(name, (taken) => byName.get(taken) !== undefined),
            null,
            key,
          );
        })
        .immediate();
    },
    lacksFirstOwner,
    async addFirstOwner(name, password, workspaces) {
      const hash = await hashed(password, cost);
      return database
        .transaction(() => {
          if (!lacksFirstOwner()) return undefined;
          const account = insertAccount(fitName(name), hash, null);
          for (const id of workspaces) upsertRole.run(account.id, id, "owner", account.createdAt);
          setFirstOwner.run(account.id);
          return account;
        })
        .immediate();
    },
    firstOwner() {
      const row = byId.get(firstOwnerId.get() ?? "");
      return row === undefined ? undefined : shown(row);
    },
    role: (account, workspace) => checkedRole(roleOf.get(account, workspace)),
    setRole: (account, workspace, role) => void upsertRole.run(account, workspace, role, Math.floor(clock.wallClock())),
    removeRole: (account, workspace) => deleteRole.run(account, workspace).changes > 0,
    memberships: ({ account = null, workspace = null }) =>
      members.all({ account, workspace }).flatMap((row) => {
        const role = checkedRole(row.role);
        return role === undefined
          ? []
          : [{ account: shown(row), workspace: row.workspace, role, createdAt: row.since }];
      }),
  };
}

async function hashed(password: string | null, cost: PasswordCost): Promise<string | null> {
  try {
    return password === null ? null : await hashPassword(password, cost);
  } catch (cause) {
    throw new AccountError(cause instanceof Error ? cause.message : String(cause), { cause });
  }
}

const isName = (text: string) => NAME.test(text) && !isUuid(text);

function checkName(name: string): void {
  if (isName(name)) return;
  throw new AccountError(
    `an account's name has 1 to 64 letters, digits and . _ @ + - inside, and is no id; got ${JSON.stringify(name)}`,
  );
}

/** A role that this program does not know gives no right. */
function checkedRole(text: string | undefined): Role | undefined {
  return ROLES.find((role) => role === text);
}

/** The provider's name for the person, adapted to the rules; with a number when another account has the name. */
function freeName(wanted: string, isTaken: (name: string) => boolean): string {
  const name = fitName(wanted);
  for (let number = 1; ; number += 1) {
    const candidate = number === 1 ? name : `${name}-${number}`;
    if (!isTaken(candidate)) return candidate;
  }
}

/** The part of a foreign name that our rules allow. */
function fitName(wanted: string): string {
  const fit = wanted
    .normalize("NFC")
    .replace(/[^\p{L}\p{N}._@+-]+/gu, "-")
    .replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu, "")
    .slice(0, 56);
  return isName(fit) ? fit : "user";
}
