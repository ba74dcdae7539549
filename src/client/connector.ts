/**
 * Connections to a gateway on this machine. They get a token only if no other user can be at the other end: through a
 * Unix socket of this user, or over TCP if the listening program belongs to this user or to root.
 */
import type { Socket } from "node:net";
import type { buildConnector } from "undici";
import { openSocket } from "../lib/socket-address.ts";
import type { RemoteError } from "./errors.ts";
import { isLoopback, listeningUsers } from "./listener.ts";

/** The program that listens at the gateway's address belongs to another user. */
class Stranger extends Error {
  override readonly name = "Stranger";
}

/**
 * True if a call failed because the other end belongs to another user. An error that crossed threads keeps its name but
 * not its class, so the name counts.
 */
export function isOfStranger({ cause }: Pick<RemoteError, "cause">): boolean {
  return cause instanceof Error && ["Stranger", "ForeignSocket"].includes(cause.name);
}

interface ConnectorOptions {
  /** Milliseconds until the connection must be there. */
  readonly timeout: number;
  /** Connects through this Unix socket instead of TCP. */
  readonly socketPath?: string;
}

type Connector = buildConnector.connector;
type Build = typeof buildConnector;

export function createConnector(build: Build, { timeout, socketPath }: ConnectorOptions): Connector {
  return socketPath === undefined ? checkingListener(build({ timeout })) : throughSocket(build, timeout, socketPath);
}

/** The socket is checked for each connection: another one may have taken its place. */
function throughSocket(build: Build, timeout: number, socketPath: string): Connector {
  return (options, callback) => {
    try {
      const place = openSocket(socketPath, ownUser());
      try {
        // The kernel reads the path before this call returns.
        build({ timeout, socketPath: place.path })(options, (...connected) => {
          const [error] = connected;
          if (error === null) return callback(...connected);
          callback(new Error(error.message.replace(place.path, socketPath), { cause: error }), null);
        });
      } finally {
        place.close();
      }
    } catch (error) {
      callback(error as Error, null);
    }
  };
}

function checkingListener(connect: Connector): Connector {
  return (options, callback) => {
    connect(options, (...connected) => {
      const [error, socket] = connected;
      const trouble = error === null && options.protocol === "http:" ? strangerAt(socket) : undefined;
      if (trouble === undefined) return callback(...connected);
      socket?.destroy();
      callback(trouble, null);
    });
  };
}

/** Checked after connecting and before anything is sent: a program that listened earlier may be gone by now. */
function strangerAt({ remoteAddress = "", remotePort = 0 }: Socket): Error | undefined {
  if (!isLoopback(remoteAddress)) return undefined;
  try {
    const stranger = listeningUsers(remoteAddress, remotePort).find((user) => user !== 0 && user !== ownUser());
    if (stranger === undefined) return undefined;
    return new Stranger(
      `a program of user ${stranger} listens there and would get the token; expected one of this user or root`,
    );
  } catch (cause) {
    return new Error("the user whose program listens there cannot be found out", { cause });
  }
}

function ownUser(): number {
  return process.getuid?.() ?? 0;
}
