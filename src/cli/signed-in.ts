/** Credentials of a command: the saved login of its environment, or a message how to sign in. */
import type { Credentials } from "../client/index.ts";
import { OPERATIONS, type Operation, type OperationName } from "../contract/operations.ts";
import { forbidCore } from "../lib/core-file.ts";
import type { ChosenEnvironment } from "./environments.ts";
import { LOCAL } from "./environments.ts";

interface TokenChoice {
  /** Absent: all scopes that were approved. */
  readonly scopes?: readonly string[] | undefined;
  readonly workspace?: string | undefined;
}

/** The command as a person would type it. */
export const howToSignIn = (environment: string) =>
  environment === LOCAL ? 'run "wsfs login"' : `run "wsfs login --env ${environment}"`;

export async function signedIn(at: ChosenEnvironment, choice: TokenChoice = {}): Promise<Credentials> {
  forbidCore();
  const { savedLogin } = await import("../client/index.ts");
  return savedLogin(at.loginFile, { ...choice, howToSignIn: howToSignIn(at.name) });
}

/**
 * The scopes that a token needs for these operations. A scope that an operation can do without is asked for only if the
 * login has it.
 */
export async function scopesOf(
  at: Pick<ChosenEnvironment, "loginFile">,
  names: readonly OperationName[],
): Promise<readonly string[]> {
  const operations = names.map((name): Operation => OPERATIONS[name]);
  const scopes = operations.flatMap((operation) => operation.scopes);
  const optional = new Set<string>(operations.flatMap(({ mayLack = [] }) => mayLack));
  if (optional.size === 0) return scopes;
  const { describeLogin } = await import("../client/index.ts");
  const approved = (await describeLogin(at.loginFile))?.scope.split(" ") ?? [];
  return scopes.filter((scope) => !optional.has(scope) || approved.includes(scope));
}
