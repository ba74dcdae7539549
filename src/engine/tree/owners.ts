/**
 * Owners of nodes: numbers and names in the attributes, and the numbers that programs of this machine are shown. A
 * number has a meaning on one machine only. So where this machine has an account with the name, the name counts, and
 * not the number beside it.
 */
import type { Attributes } from "../../contract/attributes.ts";
import { isSetGroupId } from "../../lib/set-id-bits.ts";
import type { Inode } from "../../metadata/inodes.ts";
import type { AccountKind, Caller } from "../api/index.ts";
import type { Host } from "../core/index.ts";

/** The number of the user and of the group that own nothing. */
const NOBODY = 65_534;

const KEYS = { user: ["uid", "uname"], group: ["gid", "gname"] } as const;

/** A user or a group as this machine knows it. `number`: uid or gid. `name` undefined: the account is not known. */
export interface Account {
  readonly number: number;
  readonly name: string | undefined;
}

export interface Maker {
  readonly user: Account;
  readonly group: Account;
}

type Needs = Pick<Host, "settings" | "accounts">;

/** The numbers that programs of this machine are shown. Never rejects: NOBODY where the accounts cannot be read. */
export async function realOwner(
  { settings: { owner }, accounts }: Needs,
  { uid, uname, gid, gname }: Attributes,
): Promise<{ uid: number; gid: number }> {
  return {
    uid: (await numberHere(accounts, "user", uid, uname)) ?? owner.uid,
    gid: (await numberHere(accounts, "group", gid, gname)) ?? owner.gid,
  };
}

async function numberHere(
  accounts: Needs["accounts"],
  kind: AccountKind,
  number: number | undefined,
  name: string | undefined,
): Promise<number | undefined> {
  if (name === undefined) return number;
  try {
    const here = await accounts.numberOf(kind, name);
    if (here !== undefined || number === undefined) return here;
    // The owner is an account of another machine. It must not become an account of this machine that has the same
    // number.
    return (await accounts.nameOf(kind, number)) === undefined ? number : NOBODY;
  } catch {
    return NOBODY;
  }
}

/** The account with this number (uid or gid), and its name if this machine knows it. Never rejects. */
export async function accountOf({ accounts }: Needs, kind: AccountKind, number: number): Promise<Account> {
  // Without the name, the number counts.
  return { number, name: await accounts.nameOf(kind, number).catch(() => undefined) };
}

/** The owner of a node that the caller makes. Undefined: no owner is stored (`owners` is "mine"). Never rejects. */
export async function makerOf(context: Needs, { uid, gid }: Caller): Promise<Maker | undefined> {
  if (context.settings.owners === "mine") return undefined;
  return { user: await accountOf(context, "user", uid), group: await accountOf(context, "group", gid) };
}

/**
 * The attributes of a new node that `maker` makes in the folder. With the set-group-ID bit, the group is the folder's.
 */
export function madeBy(maker: Maker | undefined, folder: Inode, attributes: Attributes): Attributes {
  if (maker === undefined) return attributes;
  const owned = withAccount(attributes, "user", maker.user);
  if (!isSetGroupId(folder.attributes.mode)) return withAccount(owned, "group", maker.group);
  const { gid, gname } = folder.attributes;
  return { ...owned, ...(gid === undefined ? {} : { gid }), ...(gname === undefined ? {} : { gname }) };
}

/** The attributes after chown(2). Returns the same object if the account owns the node already. */
export function chowned(
  { settings: { owner, owners } }: Pick<Needs, "settings">,
  attributes: Attributes,
  kind: AccountKind,
  account: Account,
): Attributes {
  const [numberKey, nameKey] = KEYS[kind];
  const name = attributes[nameKey];
  const number = attributes[numberKey] ?? (owners === "mine" ? owner[numberKey] : undefined);
  const isOwner = name === undefined ? number === account.number : name === account.name;
  return isOwner ? attributes : withAccount(attributes, kind, account);
}

function withAccount(attributes: Attributes, kind: AccountKind, { number, name }: Account): Attributes {
  const [numberKey, nameKey] = KEYS[kind];
  const { [nameKey]: _, ...others } = attributes;
  return { ...others, [numberKey]: number, ...(name === undefined ? {} : { [nameKey]: name }) };
}
