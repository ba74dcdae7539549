/**
 * `connect`: the gateway for programs. It has every operation, with retries where they are safe, over the calls of one
 * request each (`client.ts`). Importing it loads little: schemas and HTTP are loaded with the first call.
 */
import type { Transport } from "../contract/http.ts";
import { wallTime } from "../lib/clocks.ts";
import { type Logger, SILENT } from "../lib/log.ts";
import type { Clock } from "../lib/runtime.ts";
import { systemClock } from "../lib/system-clock.ts";
import {
  type Check,
  checkArguments,
  either,
  fields,
  filledText,
  hasMethods,
  is,
  optional,
  wholeNumber,
} from "./checks.ts";
import type { Client } from "./client.ts";
import type { ClientOptions } from "./create-client.ts";
import type { Credentials } from "./credentials.ts";
import { RemoteError } from "./errors.ts";
import { createHttpTransport, LIMITS, type SilenceLimits } from "./http-transport.ts";
import type { ProfileFile } from "./profile.ts";
import { type AccountCalls, createAccountCalls } from "./sdk/account.ts";
import { type ApiKeys, createApiKeys } from "./sdk/api-keys.ts";
import {
  ACCOUNT,
  API_KEYS,
  checked,
  ENGINES,
  EXECUTIONS,
  FILES,
  INSTALLATIONS,
  JOURNAL,
  NODES,
  TRIGGERS,
  VERSIONS,
  WORKSPACES,
} from "./sdk/arguments.ts";
import type { Context } from "./sdk/context.ts";
import { createEngines, createInstallations, type Engines, type Installations } from "./sdk/engines.ts";
import { createExecutions, type Executions } from "./sdk/executions.ts";
import { createFiles, type Files } from "./sdk/files.ts";
import { createJournal, type Journal } from "./sdk/journal.ts";
import { createNodes, type Nodes } from "./sdk/nodes.ts";
import { createRetrier, RETRIES, type RetryOptions } from "./sdk/retry.ts";
import { createTriggers, type Triggers } from "./sdk/triggers.ts";
import { createVersions, type Versions } from "./sdk/versions.ts";
import { createWorkspaces, type Workspaces } from "./sdk/workspaces.ts";

export interface ConnectOptions {
  /** "https://host[:port][/prefix]". */
  readonly baseUrl: string;
  readonly credentials: Credentials;
  /** Name or id, for calls by path and of the journal. A token that is bound to a workspace needs none. */
  readonly workspace?: string | undefined;
  /**
   * The name of the mount that the changes are made for, as the journal shows it: 1 to 128 visible ASCII characters.
   * Default: none.
   */
  readonly mount?: string | undefined;
  /**
   * For a gateway that uses other words or has fewer features: the content of the JSON file of `wsfs mount --profile`.
   * If it has faults, every call fails with "invalid" (field "profile").
   */
  readonly profile?: ProfileFile | undefined;
  /** False: every call is sent only once. */
  readonly retries?: RetryOptions | false | undefined;
  /** The limits on silence. No call has a limit on its whole time; a signal can set one. */
  readonly limits?: SilenceLimits | undefined;
  /** The largest number of connections for each of: calls without content, downloads, uploads. Default 16. */
  readonly connections?: number | undefined;
  /** One line per request at level debug, never with a token. A pino logger fits. Default: none. */
  readonly log?: Logger | undefined;
  /** Used instead of HTTP, for tests and gateways without sockets. `limits` and `connections` then have no effect. */
  readonly transport?: Transport | undefined;
  /** Time and randomness, for tests. */
  readonly clock?: ClientClock | undefined;
}

/** The time and the randomness that the client needs. */
export interface ClientClock extends Pick<Clock, "setTimer" | "random" | "uuid"> {
  /** Milliseconds since 1970. */
  wallClock(): number;
}

/**
 * A call that fails rejects with a `RemoteError`, whose `code` says what to do, unless it says otherwise. Any call may fail
 * with:
 * - "offline", "silent", "server", "malformed": the network or the gateway fails.
 * - "throttled": too many calls. "aborted": the signal or `close` ended the call.
 * - "unauthorized": there is no valid token. "forbidden": the token lacks the scope, the account lacks the role, or the
 *   token is bound to another workspace.
 * - "invalid": an argument is wrong (`field`), or the gateway lacks the call. Nothing was done. A wrong argument that
 *   is noticed here sends nothing.
 *
 * A call in a workspace also fails with "notFound" when the token shows no such workspace, and with "invalid" (field
 * "workspace") when it names none and the token is bound to none. Further codes stand at each call.
 */
export interface Gateway {
  readonly account: AccountCalls;
  readonly workspaces: Workspaces;
  readonly nodes: Nodes;
  readonly files: Files;
  readonly versions: Versions;
  readonly journal: Journal;
  readonly engines: Engines;
  readonly installations: Installations;
  readonly executions: Executions;
  readonly apiKeys: ApiKeys;
  readonly triggers: Triggers;
  /**
   * The calls of one request each, for programs that do their own retries. Rejects with "invalid" (field "profile")
   * when the profile has faults.
   */
  calls(): Promise<Client>;
  /** Ends calls under way ("aborted") and frees the connections. */
  close(): Promise<void>;
}

/** A program without types may pass the token itself as credentials, so no message shows a value. */
const OPTIONS: Check = fields<ConnectOptions>({
  baseUrl: filledText,
  credentials: hasMethods("savedLogin(…), staticToken(…), tokenFile(…) or tokenCommand(…)", "token", "renew"),
  workspace: optional(filledText),
  mount: optional(filledText),
  profile: optional(is("an object", (value) => typeof value === "object" && value !== null)),
  retries: optional(either(false, RETRIES)),
  limits: optional(LIMITS),
  connections: optional(wholeNumber(1)),
  log: optional(hasMethods("a logger", "isLevelEnabled", "debug", "info", "warn", "error")),
  transport: optional(hasMethods("a transport", "send", "close")),
  clock: optional(hasMethods("a clock", "wallClock", "setTimer", "random", "uuid")),
});

/** Sends nothing. Throws a TypeError that names a wrong or unknown option. */
export function connect(options: ConnectOptions): Gateway {
  checkArguments("connect", { options: OPTIONS }, [options]);
  const { credentials, workspace, mount, log = SILENT, clock = systemClock, limits, connections } = options;
  const transport =
    options.transport ??
    createHttpTransport({
      baseUrl: options.baseUrl,
      ...(limits === undefined ? undefined : { limits }),
      ...(connections === undefined ? undefined : { connections }),
    });
  const retrier = createRetrier(clock, options.retries);
  let loaded: Promise<Client> | undefined;
  const load = () => {
    loaded ??= loadClient(
      { transport, credentials, log, now: () => wallTime(clock.wallClock()), mount },
      options.profile,
    );
    return loaded;
  };
  const context: Context = { load, retrier, uuid: clock.uuid, workspace };
  return {
    account: checked("account", createAccountCalls(context), ACCOUNT),
    workspaces: checked("workspaces", createWorkspaces(context), WORKSPACES),
    nodes: checked("nodes", createNodes(context), NODES),
    files: checked("files", createFiles(context), FILES),
    versions: checked("versions", createVersions(context), VERSIONS),
    journal: checked("journal", createJournal(context), JOURNAL),
    engines: checked("engines", createEngines(context), ENGINES),
    installations: checked("installations", createInstallations(context), INSTALLATIONS),
    executions: checked("executions", createExecutions(context), EXECUTIONS),
    apiKeys: checked("apiKeys", createApiKeys(context), API_KEYS),
    triggers: checked("triggers", createTriggers(context), TRIGGERS),
    async calls() {
      const [client, { CALLS }] = await Promise.all([load(), import("./sdk/call-arguments.ts")]);
      return checked("calls", client, CALLS);
    },
    async close() {
      retrier.close();
      await transport.close();
    },
  };
}

async function loadClient(options: ClientOptions, profile: ProfileFile | undefined): Promise<Client> {
  const { createClient } = await import("./create-client.ts");
  if (profile === undefined) return createClient(options);
  const { checkProfile, ProfileError } = await import("./profile.ts");
  try {
    return createClient({ ...options, profile: checkProfile(profile, "profile") });
  } catch (cause) {
    if (!(cause instanceof ProfileError)) throw cause;
    throw new RemoteError("invalid", cause.message, { field: "profile", isUnsent: true, cause });
  }
}
