/**
 * The reason why the mount is read-only, and why no waiting change is sent: the user asked for that, the token lacks a
 * scope, the account's role in the workspace is too low, or the mounted folder was deleted. The role is known from the
 * workspace, and from the first change that is refused for it. From then on all other changes wait, and programs get
 * EROFS. sync/quota.ts asks for the workspace again.
 */
import type { RemoteErrorDetails } from "../../client/errors.ts";
import type { Workspace } from "../../contract/resources.ts";
import { includesRole, type Role } from "../../contract/roles.ts";

/** The role that changing files takes. */
const NEEDED: Role = "editor";
const ROOT_DELETED = "the folder that is mounted was deleted; once it is restored, the mount goes on by itself";

export interface ReadOnly {
  /** The reason, in words for people; undefined: changes are allowed, as far as is known. */
  readonly why: string | undefined;
  /** The account lacks a role. The gateway does not announce a new role, so it has to be asked. */
  readonly isForRole: boolean;
  /**
   * `lack`: the scopes that the token lacks for changes, in words. If the token had all at the start, a later lack does
   * not make the mount read-only: programs go on, and requests that need the scope wait.
   */
  tokenChanged(lack: string | undefined): void;
  /** The gateway was asked for the workspace; undefined: it shows no such workspace. */
  shown(workspace: Workspace | undefined): void;
  /** A change was refused because it takes this role. */
  refused(grant: NonNullable<RemoteErrorDetails["grant"]>): void;
}

/**
 * `lack`: see tokenChanged. `isRootDeleted`: whether the folder that is mounted was deleted. `onChange`: called with true
 * when a role turned out to be lacking, with false when it was given.
 */
export function createReadOnly(
  workspace: Workspace,
  options: {
    isAskedFor: boolean;
    lack: string | undefined;
    isRootDeleted?: () => boolean;
    onChange: (isForRole: boolean) => void;
  },
): ReadOnly {
  const { isAskedFor, isRootDeleted, onChange } = options;
  let { lack } = options;
  let role = roleProblem(workspace);

  function roleProblem(found: Workspace | undefined): string | undefined {
    const ask = "ask an owner of it, then it goes on by itself";
    if (found === undefined) return `you have no role in workspace "${workspace.name}" any more: ${ask}`;
    if (found.role === undefined || includesRole(found.role, NEEDED)) return undefined;
    return `your role in workspace "${found.name}" is ${found.role}, changing files takes ${NEEDED}: ${ask}`;
  }

  function setRole(problem: string | undefined): void {
    if (problem === role) return;
    role = problem;
    onChange(role !== undefined);
  }

  return {
    get why() {
      if (isAskedFor) return "asked for";
      return lack ?? role ?? (isRootDeleted?.() === true ? ROOT_DELETED : undefined);
    },
    get isForRole() {
      return role !== undefined;
    },
    tokenChanged(newLack) {
      if (lack !== undefined) lack = newLack;
    },
    shown: (found) => setRole(roleProblem(found)),
    refused({ role: needed }) {
      // The next look tells which role the account has. Until then nothing is tried again.
      if (role === undefined) setRole(`changing files in workspace "${workspace.name}" takes the role ${needed}`);
    },
  };
}
