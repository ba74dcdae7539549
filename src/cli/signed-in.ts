/** Credentials of a command: the saved login of its environment, and how to sign in where there is none. */
import type { Credentials } from "../client/index.ts";
import { forbidCore } from "../lib/core-file.ts";
import type { ChosenEnvironment } from "./environments.ts";
import { LOCAL } from "./environments.ts";

export interface TokenChoice {
  /** All that were approved when absent. */
  readonly scopes?: readonly string[] | undefined;
  readonly workspace?: string | undefined;
}

/** As a person would type it. */
export const howToSignIn = (environment: string) =>
  environment === LOCAL ? 'run "wsfs login"' : `run "wsfs login --env ${environment}"`;

export async function signedIn(at: ChosenEnvironment, choice: TokenChoice = {}): Promise<Credentials> {
  forbidCore();
  const { savedLogin } = await import("../client/index.ts");
  return savedLogin(at.loginFile, { ...choice, howToSignIn: howToSignIn(at.name) });
}
