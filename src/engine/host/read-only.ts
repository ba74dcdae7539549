/**
 * Why nothing may be changed here, and nothing that waits is sent: that was asked for, the token lacks a scope, or the
 * account's role in the workspace is too low. The role is told with the workspace, and by the first change that is
 * refused for it; all others wait then, and programs hear EROFS. Who asks for the workspace again: sync/quota.ts.
 */
import type { RemoteErrorDetails } from "../../client/errors.ts";
import type { Workspace } from "../../contract/resources.ts";
import { includesRole, type Role } from "../../contract/roles.ts";

/** What it takes to change files. */
const NEEDED: Role = "editor";

export interface ReadOnly {
  /** In words for people; undefined: nothing is known against changes. */
  readonly why: string | undefined;
  /** A role is lacking: nobody tells when it is given, so the gateway has to be asked. */
  readonly isForRole: boolean;
  /** What the token lacks for changes, in words. Once it had all, programs go on, and what lacks a scope waits. */
  tokenChanged(lack: string | undefined): void;
  /** The gateway was asked for the workspace; undefined: it shows none. */
  shown(workspace: Workspace | undefined): void;
  /** A change was refused: the account would have to be this. */
  refused(grant: NonNullable<RemoteErrorDetails["grant"]>): void;
}

/** `lack`: as of tokenChanged. `onChange`: a role turned out to be lacking (true), or was given. */
export function createReadOnly(
  workspace: Workspace,
  options: { isAskedFor: boolean; lack: string | undefined; onChange: (isForRole: boolean) => void },
): ReadOnly {
  const { isAskedFor, onChange } = options;
  let { lack } = options;
  let role = roleProblem(workspace);

  function roleProblem(told: Workspace | undefined): string | undefined {
    const ask = "ask an owner of it, then it goes on by itself";
    if (told === undefined) return `you have no role in workspace "${workspace.name}" any more: ${ask}`;
    if (told.role === undefined || includesRole(told.role, NEEDED)) return undefined;
    return `your role in workspace "${told.name}" is ${told.role}, changing files takes ${NEEDED}: ${ask}`;
  }

  function setRole(problem: string | undefined): void {
    if (problem === role) return;
    role = problem;
    onChange(role !== undefined);
  }

  return {
    get why() {
      return isAskedFor ? "asked for" : (lack ?? role);
    },
    get isForRole() {
      return role !== undefined;
    },
    tokenChanged(told) {
      if (lack !== undefined) lack = told;
    },
    shown: (told) => setRole(roleProblem(told)),
    refused({ role: needed }) {
      // What the role is says the next look; until then nothing is tried again.
      if (role === undefined) setRole(`changing files in workspace "${workspace.name}" takes the role ${needed}`);
    },
  };
}
