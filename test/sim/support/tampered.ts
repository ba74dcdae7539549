/** A world with one mount whose requests can be changed on their way, or carry another token. */
import type { HttpRequest } from "../../../src/contract/http.ts";
import { signToken } from "../../../src/gateway/tokens.ts";
import { begin, there } from "./one-world.ts";
import { SIGNING_KEY } from "./world.ts";

type More = Parameters<typeof begin>[1];

/** Requests are changed by what `tamper.change` is by then. */
export async function tampered(more: More = {}) {
  const tamper: { change: (request: HttpRequest) => HttpRequest } = { change: (request) => request };
  const one = await begin({ request: (request) => tamper.change(request) }, more);
  const { world } = one;
  return {
    ...one,
    tamper,
    /** From here on requests bear this token, or what it answers for each. */
    withBearer(token: string | (() => string), isMeant: (request: HttpRequest) => boolean = () => true) {
      const bearer = () => `Bearer ${typeof token === "string" ? token : token()}`;
      tamper.change = (request) =>
        isMeant(request) ? { ...request, headers: { ...request.headers, authorization: bearer() } } : request;
    },
    /** A token with these scopes, for the workspace. */
    tokenWith: (scopes: readonly string[]) =>
      signToken(SIGNING_KEY, world.clock, { scopes, workspace: world.workspace.id, ttlSeconds: 86_400 * 30 }),
    /** Requests are as they were. */
    heal() {
      tamper.change = (request) => request;
    },
    /** The paths that the gateway has. */
    there: async () => [...(await there(world)).keys()],
  };
}
