/** The surroundings of a program that the gateway runs as an engine. */
import { readFileSync } from "node:fs";
import { connect, type Gateway } from "../connect.ts";
import { staticToken } from "../credentials.ts";
import { RemoteError } from "../errors.ts";

export interface RunningEngine {
  /** Connected as the execution, in its workspace, with the engine's scopes. Must be closed. */
  readonly gateway: Gateway;
  /** The input of the execution: any JSON. */
  readonly input: unknown;
  readonly executionId: string;
  /** Ids of the workspace, and of the installation's folder in it. */
  readonly workspace: string;
  readonly folderId: string;
}

const VARIABLES = ["WSFS_BASE_URL", "WSFS_TOKEN", "WSFS_WORKSPACE", "WSFS_EXECUTION", "WSFS_FOLDER"] as const;

/**
 * For a program that the gateway runs: reads its input (all of standard input) and connects with the token that the
 * gateway gave it. Throws a RemoteError "invalid" (`field`: the missing variable) when no gateway started the program,
 * and a SyntaxError when the input is not JSON.
 */
export function engine(environment: NodeJS.ProcessEnv = process.env): RunningEngine {
  const [baseUrl, token, workspace, executionId, folderId] = VARIABLES.map((name) => {
    const value = environment[name];
    if (value !== undefined && value !== "") return value;
    throw new RemoteError("invalid", `engine: expected ${name} in the environment: is it the gateway that runs this?`, {
      field: name,
      isUnsent: true,
    });
  }) as [string, string, string, string, string];
  const input: unknown = JSON.parse(readFileSync(0, "utf8"));
  return {
    gateway: connect({ baseUrl, credentials: staticToken(token), workspace }),
    input,
    executionId,
    workspace,
    folderId,
  };
}
