/**
 * Access tokens from a saved login. A token is minted for some scopes and a workspace, and kept in memory. It is
 * replaced before it expires or when the gateway refuses it. Any number of programs can share a login.
 */

import { setTimeout as pause } from "node:timers/promises";
import type { Credentials } from "../credentials.ts";
import { RemoteError } from "../errors.ts";
import { type Keyring, systemKeyring } from "../keyring.ts";
import { replacementTime } from "../token-claims.ts";
import { asking, configure, OauthRefusal, oauth } from "./authorization.ts";
import {
  type Login,
  loginIdentity,
  readLogin,
  removeLogin,
  type Store,
  storeOf,
  withLoginLock,
  writeLogin,
} from "./login-file.ts";

export interface SavedLoginOptions {
  /** Scopes of the tokens, among those that were approved. Absent: all of those. */
  readonly scopes?: readonly string[] | undefined;
  /** The only workspace in which the tokens are valid, by name or id. Absent: all of the account's. */
  readonly workspace?: string | undefined;
  /** Advice on how to sign in again, which ends an error message. */
  readonly howToSignIn?: string | undefined;
  /** Absent: the system's keyring. */
  readonly keyring?: Keyring | undefined;
}

interface Minted {
  readonly token: string;
  /** Milliseconds since the epoch. */
  readonly replaceAt: number;
}

const AGAIN_MS = [200, 1000];

/**
 * Credentials from the login that `saveLogin` put into the file. They reject with "unauthorized" when there is no
 * login, it has ended or cannot be read; with "notFound" when it shows no such workspace; with "invalid" when its
 * server's address is unsafe; and with "offline", "silent", "server" or "malformed" when the server fails.
 */
export function savedLogin(path: string, options: SavedLoginOptions = {}): Credentials {
  const { howToSignIn = "sign in", keyring = systemKeyring() } = options;
  let current: Minted | undefined;
  let minting: Promise<Minted> | undefined;
  /** A login that has ended, with the identity of its file. Only another file is tried again. */
  let ended: { readonly identity: string | undefined; readonly error: RemoteError } | undefined;

  async function mintNew(): Promise<Minted> {
    if (ended !== undefined && ended.identity === (await loginIdentity(path))) throw ended.error;
    ended = undefined;
    try {
      current = await mint(path, options, keyring);
      return current;
    } catch (error) {
      if (!(error instanceof LoginOver)) throw error;
      current = undefined;
      ended = {
        identity: error.identity,
        error: new RemoteError("unauthorized", `${error.message}: ${howToSignIn}`, { cause: error }),
      };
      throw ended.error;
    }
  }

  const minted = (): Promise<Minted> => {
    minting ??= mintNew().finally(() => {
      minting = undefined;
    });
    return minting;
  };

  return {
    async token() {
      if (current !== undefined && Date.now() < current.replaceAt) return current.token;
      return (await minted()).token;
    },
    async renew(rejected) {
      // Another call has met the same 401 and found a new token.
      if (current !== undefined && current.token !== rejected) return current.token;
      const { token } = await minted();
      return token === rejected ? undefined : token;
    },
  };
}

/** The login in this file has ended. Another try with it would fail too. */
class LoginOver extends Error {
  readonly identity: string | undefined;
  constructor(message: string, identity: string | undefined, cause?: unknown) {
    super(message, { cause });
    this.identity = identity;
  }
}

function mint(path: string, { scopes, workspace }: SavedLoginOptions, keyring: Keyring): Promise<Minted> {
  return withLoginLock(path, async () => {
    const identity = await loginIdentity(path);
    const login = await readLogin(path, keyring);
    if (login === undefined) throw new LoginOver("not signed in", identity);
    const configuration = await configure(login.server);
    const { refreshTokenGrant } = await oauth();
    const asked = {
      ...(scopes === undefined ? {} : { scope: scopes.join(" ") }),
      ...(workspace === undefined ? {} : { workspace }),
    };
    const begun = Date.now();
    const refresh = () => asking("login", () => refreshTokenGrant(configuration, login.refreshToken, asked));
    // The refresh token may be used up although no answer came. For a minute, and no longer, the gateway answers a
    // repeated use with the same new token.
    const tokens = await again(refresh, AGAIN_MS).catch((error: unknown) => {
      if (!(error instanceof OauthRefusal)) throw error;
      if (error.error === "invalid_grant") throw new LoginOver("the login has ended", identity, error);
      if (error.error === "invalid_target") {
        const why = `no workspace "${workspace}" is visible to this login`;
        throw new RemoteError("notFound", why, { status: 404, cause: error });
      }
      throw error;
    });
    if (tokens.refresh_token !== undefined && tokens.refresh_token !== login.refreshToken) {
      await writeLogin(path, { ...login, refreshToken: tokens.refresh_token }, login.store, keyring);
    }
    const lifeMs = (tokens.expires_in ?? 300) * 1000;
    return { token: tokens.access_token, replaceAt: replacementTime(begun, begun + lifeMs) };
  });
}

/** Tries again after each pause, while no answer comes. */
async function again<T>(work: () => Promise<T>, pausesMs: readonly number[]): Promise<T> {
  for (const pauseMs of pausesMs) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof RemoteError) || (error.code !== "offline" && error.code !== "silent")) throw error;
      await pause(pauseMs);
    }
  }
  return work();
}

export interface StoreOptions {
  /**
   * The store of the login: an owner-only file, or the system keyring with a file that points to it. Default: as the
   * login before, otherwise "file".
   */
  readonly store?: Store | undefined;
  readonly keyring?: Keyring | undefined;
}

/**
 * Saves a login of `deviceLogin` in the place of an earlier one. Rejects with a RemoteError "unauthorized" when the
 * keyring does not take it, and with the system's error when the file cannot be written. The login is then ended at the
 * gateway and saved nowhere.
 */
export function saveLogin(path: string, login: Login, options: StoreOptions = {}): Promise<void> {
  const { keyring = systemKeyring() } = options;
  return withLoginLock(path, async () => {
    const before = await storeOf(path);
    const store = options.store ?? before ?? "file";
    try {
      await writeLogin(path, login, store, keyring);
    } catch (error) {
      await revoke(login).catch(() => {});
      throw error;
    }
    // Nothing reads the old secret any more, so it does no harm if the keyring does not answer.
    if (before === "keyring" && store === "file") await keyring.remove(path).catch(() => {});
  });
}

/**
 * Rejects with a RemoteError "unauthorized" when the login goes to the keyring and none answers. To be called before a
 * person signs in.
 */
export async function checkStore(path: string, options: StoreOptions = {}): Promise<void> {
  const { keyring = systemKeyring() } = options;
  if ((options.store ?? (await storeOf(path))) === "keyring") await keyring.get(path);
}

/**
 * Describes a saved login without asking the gateway. Undefined: there is none. Rejects with a RemoteError
 * "unauthorized" when it cannot be read.
 */
export async function describeLogin(
  path: string,
  { keyring = systemKeyring() }: Pick<StoreOptions, "keyring"> = {},
): Promise<(Omit<Login, "refreshToken"> & { readonly store: Store }) | undefined> {
  const login = await readLogin(path, keyring);
  if (login === undefined) return undefined;
  const { refreshToken: _, ...known } = login;
  return known;
}

/**
 * Ends the login at the gateway, then removes it here. False: there was none. When the gateway or the keyring cannot be
 * reached, it rejects with a RemoteError ("offline", "silent", "server", "unauthorized") and the login stays. With
 * `isForced` the login is then removed here only.
 */
export function endLogin(
  path: string,
  { isForced = false, keyring = systemKeyring() }: { isForced?: boolean } & Pick<StoreOptions, "keyring"> = {},
): Promise<boolean> {
  const unlessForced = (error: unknown): true => {
    if (!isForced) throw error;
    return true;
  };
  return withLoginLock(path, async () => {
    const store = await storeOf(path);
    const login = await readLogin(path, keyring).catch(unlessForced);
    if (typeof login === "object") await revoke(login).catch(unlessForced);
    if (store === "keyring") await keyring.remove(path).catch(unlessForced);
    await removeLogin(path);
    return login !== undefined;
  });
}

async function revoke(login: Login): Promise<void> {
  const configuration = await configure(login.server);
  const { tokenRevocation } = await oauth();
  await asking("logout", () => tokenRevocation(configuration, login.refreshToken));
}
