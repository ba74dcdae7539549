/**
 * By which names a gateway is known. A page in somebody's browser can have its own name lead to this address (DNS
 * rebinding) and then speak to the gateway as to its own server: such requests come with that name in Host.
 */
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { jsonAnswer } from "./exchange.ts";
import { ProblemError } from "./problems.ts";

const LOOPBACK = ["localhost", "127.0.0.1", "[::1]"];
/** An address in brackets or a name, and a port, which a tunnel may change. */
const HOST = /^(\[[\da-f:.]+\]|[^\s:@/?#[\]\\]+)(?::\d{1,5})?$/i;

const MAPPED = /^::ffff:(?=\d+\.)/;

/** `names`: that it listens on, and those the operator gives. */
export function ownNames(names: readonly string[]): (incoming: IncomingMessage) => boolean {
  const own = new Set([...LOOPBACK, ...names.map(asInHost)]);
  return ({ headers, socket }) => {
    const { localAddress } = socket;
    // Whoever may use the Unix socket is no browser; nor is who speaks HTTP/1.0 and names nobody.
    if (localAddress === undefined || headers.host === undefined) return true;
    const name = HOST.exec(headers.host)?.[1]?.toLowerCase();
    return name !== undefined && (own.has(name) || name === asInHost(localAddress.replace(MAPPED, "")));
  };
}

interface Asked extends Pick<IncomingMessage, "headers"> {
  readonly socket: Pick<Socket, "remoteAddress">;
}

/** Asked by a program of this machine and under a loopback name: not from afar, nor through a proxy that others reach. */
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
