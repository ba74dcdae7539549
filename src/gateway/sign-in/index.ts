/**
 * The entry of sign-in: OAuth endpoints, and the pages on which people approve programs. It is made at the first
 * request for one of them, so that a gateway without sign-ins starts no slower.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { deferred } from "../../lib/deferred.ts";
import type { Logger } from "../../lib/log.ts";
import type { Clock } from "../../lib/runtime.ts";
import type { AccountStore } from "../accounts/index.ts";
import type { WorkspaceChoice } from "./approval.ts";
import type { OutsideIssuer } from "./outside.ts";

export type { OutsideIssuer };

const PREFIXES = ["/oauth/", "/sign-in"];
const WELL_KNOWN = /^\/\.well-known\/(?:openid-configuration|oauth-authorization-server)$/;

interface SignInNeeds {
  readonly store: AccountStore;
  readonly clock: Clock;
  /** The address of the gateway, without a slash at its end. */
  readonly issuer: string;
  readonly log: Logger;
  /** The issuer at which people sign in instead of here. */
  readonly outside?: OutsideIssuer | undefined;
  /** Returns the workspaces that an account may use. */
  workspacesOf(account: string): readonly WorkspaceChoice[];
}

/** Answers a request of its own paths. Resolves with the status and length of the answer, once it was sent. */
export type SignIn = (
  request: IncomingMessage,
  response: ServerResponse,
  path: string,
) => Promise<{ readonly status: number; readonly bytes: number }>;

export function isSignIn(path: string): boolean {
  return PREFIXES.some((prefix) => path.startsWith(prefix)) || WELL_KNOWN.test(path);
}

export function createSignIn(needs: SignInNeeds): SignIn {
  const { store } = needs;
  let made: { readonly keys: string; readonly parts: ReturnType<typeof make> } | undefined;

  async function make() {
    const { createAuthorizationServer } = await import("./authorization-server.ts");
    const { createApproval } = await import("./approval.ts");
    const { createDeviceRequests } = await import("./device-requests.ts");
    const { issuer, clock, log, workspacesOf } = needs;
    const server = await createAuthorizationServer({
      store,
      clock,
      issuer,
      log,
      workspaceId: (account, nameOrId) =>
        workspacesOf(account).find(({ id, name }) => id === nameOrId || name === nameOrId)?.id,
    });
    const requests = createDeviceRequests(server.provider, issuer, store);
    const isSecure = issuer.startsWith("https:");
    const returnTo = `${issuer}/sign-in/outside`;
    const outside =
      needs.outside === undefined
        ? undefined
        : (await import("./outside.ts")).createOutsideSignIn({ outside: needs.outside, store, returnTo, log });
    const approval = createApproval({ store, clock, requests, isSecure, outside, workspacesOf });
    await approval.ready();
    return { server, approval };
  }

  /** A new signing key, also one made by another process, requires a new server. */
  function current() {
    const keys = store.keys
      .all()
      .map(({ kid }) => kid)
      .join(" ");
    if (made?.keys !== keys) made = { keys, parts: make() };
    return made.parts;
  }

  return async (request, response, path) => {
    const { server, approval } = await current();
    const { socket } = request;
    const { promise: ended, resolve } = deferred<void>();
    const end = () => resolve();
    response.once("close", end);
    // A response that waits for earlier ones of its connection gets no event when the connection ends.
    if (socket.destroyed) end();
    else socket.once("close", end);
    if (path.startsWith("/sign-in")) approval.routing(request, response);
    else void server.handle(request, response);
    await ended;
    socket.off("close", end);
    return { status: response.statusCode, bytes: Number(response.getHeader("content-length") ?? 0) };
  };
}
