/**
 * The token of `wsfs start`, in a file of the data folder. The mount and the programs of the person read it. The token
 * is valid for hours. The gateway that serves the folder writes another one well before it expires, or once it was
 * revoked. The token belongs to the account that start made while this account is an owner of the workspace. Otherwise
 * it has no account: the person who has the folder is an owner.
 */
import { readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { SCOPES } from "../contract/scopes.ts";
import type { Logger } from "../lib/log.ts";
import { hasCode, withCode } from "../lib/system-error.ts";
import type { Accounts } from "./accounts/index.ts";
import type { OwnToken, TokenClaims } from "./tokens.ts";

export const tokenPath = (dataDir: string) => path.join(dataDir, "token");

/** A reader of the file has a token for at least half of this time. */
const LIFE_SECONDS = 8 * 3600;
/** Lifetime of a token for a gateway of a former release, which writes no new one. */
const LASTING_SECONDS = 365 * 86_400;
/** Marks the tokens that are renewed. A person may keep another token in a file of this name. */
const CLIENT = "wsfs-start";

/** `workspace`: its id. `isRenewed`: the gateway that serves the folder keeps the file. */
export function startClaims(accounts: Accounts, workspace: string, isRenewed = true): TokenClaims {
  const ttlSeconds = isRenewed ? LIFE_SECONDS : LASTING_SECONDS;
  return { scopes: SCOPES, workspace, account: ownerOf(accounts, workspace), client: CLIENT, ttlSeconds };
}

function ownerOf(accounts: Accounts, workspace: string): string | undefined {
  const id = accounts.firstOwner()?.id;
  return id !== undefined && accounts.role(id, workspace) === "owner" ? id : undefined;
}

/** The file is readable by its owner only, and never half written. On a full disk the file keeps its room. */
export function writeTokenFile(file: string, token: string): void {
  const beside = `${file}.${process.pid}.new`;
  try {
    writeFileSync(beside, `${token}\n`, { mode: 0o600, flush: true });
    renameSync(beside, file);
  } catch (error) {
    rmSync(beside, { force: true });
    if (!hasCode(withCode(error), "ENOSPC", "EDQUOT")) throw error;
    const { size } = statSync(file);
    writeFileSync(file, `${token.padEnd(size - 1)}\n`, { flag: "r+" });
  }
}

interface TokenFileNeeds {
  readonly dataDir: string;
  readonly accounts: Accounts;
  readonly log: Logger;
  read(token: string): OwnToken | undefined;
  issue(claims: TokenClaims): string;
}

/** The returned function checks the file, and writes a new token when that one is not valid for long enough. */
export function tokenFileKeeper({ dataDir, accounts, log, read, issue }: TokenFileNeeds): () => void {
  const file = tokenPath(dataDir);
  let lastLogged: string | undefined;

  function look(): void {
    const workspace = staleIn(readFileSync(file, "utf8").trim());
    if (workspace !== undefined) writeTokenFile(file, issue(startClaims(accounts, workspace)));
  }

  /** Returns the workspace of a token that start made and that has to be replaced. */
  function staleIn(token: string): string | undefined {
    const own = read(token);
    if (own?.client !== CLIENT || own.workspace === undefined) return undefined;
    const { secondsLeft, account, workspace } = own;
    // More time than it was given: the clock was set back meanwhile, or the token is one for a former release.
    const isFresh = secondsLeft > LIFE_SECONDS / 2 && secondsLeft <= LIFE_SECONDS;
    return isFresh && account === ownerOf(accounts, workspace) ? undefined : workspace;
  }

  return () => {
    try {
      look();
      lastLogged = undefined;
    } catch (error) {
      if (hasCode(error, "ENOENT")) return;
      const { message } = error as Error;
      if (message !== lastLogged)
        log.error({ err: error }, "the token of wsfs start could not be renewed; tried again");
      lastLogged = message;
    }
  };
}
