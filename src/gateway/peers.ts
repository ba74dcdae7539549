/**
 * Connections whose peer is silent are broken. Only its own silence counts: it owes the rest of a
 * body it has begun, or does not take what was sent to it. Whoever waits for the gateway may wait
 * for as long as that takes. Knows nothing of what a request is.
 */
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";

export interface PeerWatch {
  /** A request has come, behind all of its connection that are not answered yet. */
  begin(incoming: IncomingMessage, response: ServerResponse): void;
  /** Calls back once all that have come whole are answered; not at all when another has come since, or the connection has ended. */
  whenAnswered(socket: Socket, callback: () => void): void;
}

interface Exchange {
  readonly incoming: IncomingMessage;
  readonly response: ServerResponse;
}

/** `milliseconds`: for so long nothing moved on the connection, in either direction. */
export function breakSilentPeers(server: Server, milliseconds: number): PeerWatch {
  const exchanges = new WeakMap<Socket, readonly Exchange[]>();

  function unanswered(socket: Socket): readonly Exchange[] {
    const rest = (exchanges.get(socket) ?? []).filter(({ response }) => !response.writableFinished);
    exchanges.set(socket, rest);
    return rest;
  }

  /** Whether it is the peer that everything waits for. */
  function isAwaited(socket: Socket): boolean {
    if (socket.writableLength > 0) return true;
    // They are answered in the order they came: what is behind it waits for the first.
    const [first] = unanswered(socket);
    // Between two requests there is only the peer; the server says how long that may last.
    if (first === undefined) return true;
    // What came and is not looked at yet is the gateway's to take: its silence, while that lasts.
    return !first.incoming.complete && first.incoming.readableLength === 0;
  }

  server.setTimeout(milliseconds, (socket) => {
    const before = socket.bytesRead;
    // After a stretch in which this thread was busy, timers run before sockets are looked at.
    setImmediate(() => {
      if (socket.destroyed) return;
      if (socket.bytesRead === before && isAwaited(socket)) socket.destroy();
      else socket.setTimeout(milliseconds);
    });
  });
  return {
    begin(incoming, response) {
      const { socket } = incoming;
      exchanges.set(socket, [...unanswered(socket), { incoming, response }]);
    },
    whenAnswered(socket, callback) {
      const begun = unanswered(socket);
      const latest = begun.at(-1);
      const last = begun.findLast(({ incoming }) => incoming.complete);
      if (last === undefined) return callback();
      last.response.once("finish", () => {
        if (!socket.destroyed && (unanswered(socket).at(-1) ?? latest) === latest) callback();
      });
    },
  };
}
