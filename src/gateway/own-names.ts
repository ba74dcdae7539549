/**
 * The names by which a gateway is known. A web page in a browser can make its own name resolve to this address (DNS
 * rebinding) and then speak to the gateway as to its own server. Such requests have that name in Host.
 */
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { jsonAnswer } from "./exchange.ts";
import { ProblemError } from "./problems.ts";

const LOOPBACK = ["localhost", "127.0.0.1", "[::1]"];
/** An address in brackets or a name, and a port, which a tunnel may change. */
const HOST = /^(\[[\da-f:.]+\]|[^\s:@/?#[\]\\]+)(?::\d{1,5})?$/i;

const MAPPED = /^::ffff:(?=\d+\.)/;

/** `names`: the names it listens on, and those the operator gives. */
export function ownNames(names: readonly string[]): (incoming: IncomingMessage) => boolean {
  const own = new Set([...LOOPBACK, ...names.map(asInHost)]);
  return ({ headers, socket }) => {
    const { localAddress } = socket;
    // A client of the Unix socket is no browser; neither is an HTTP/1.0 client that names no host.
    if (localAddress === undefined || headers.host === undefined) return true;
    const name = HOST.exec(headers.host)?.[1]?.toLowerCase();
    return name !== undefined && (own.has(name) || name === asInHost(localAddress.replace(MAPPED, "")));
  };
}

interface Asked extends Pick<IncomingMessage, "headers"> {
  readonly socket: Pick<Socket, "remoteAddress">;
}

/**
 * True if the request comes from this machine and names a loopback host. So it comes neither from another machine nor
 * through a proxy that others reach.
 */
export function isAskedHere({ headers, socket }: Asked): boolean {
  const name = HOST.exec(headers.host ?? "")?.[1]?.toLowerCase() ?? "";
  const peer = (socket.remoteAddress ?? "").replace(MAPPED, "");
  return LOOPBACK.includes(name) && (peer === "::1" || peer.startsWith("127."));
}

const asInHost = (name: string) => (name.includes(":") ? `[${name}]` : name).toLowerCase();

export function misdirected(host: string) {
  const problem = new ProblemError(
    421,
    `${JSON.stringify(host)} is none of this gateway's names. The operator can give it others (--allow-host).`,
  );
  return jsonAnswer(problem.status, problem.document);
}
