/**
 * Breaks connections whose peer is silent. Only the silence of the peer itself counts: the peer owes the rest of a body
 * it has begun, or does not read the bytes that were sent to it. A peer that waits for the gateway may wait as long as
 * the gateway takes. This module does not know the content of a request.
 */
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";

export interface PeerWatch {
  /** Notes a request that has come, after all unanswered requests of its connection. */
  begin(incoming: IncomingMessage, response: ServerResponse): void;
  /**
   * Calls back once all complete requests are answered. Does not call back when another request has come since, or when
   * the connection has ended.
   */
  whenAnswered(socket: Socket, callback: () => void): void;
}

interface Exchange {
  readonly incoming: IncomingMessage;
  readonly response: ServerResponse;
}

/** `milliseconds`: how long nothing has moved on the connection, in either direction. */
export function breakSilentPeers(server: Server, milliseconds: number): PeerWatch {
  const exchanges = new WeakMap<Socket, readonly Exchange[]>();

  function unanswered(socket: Socket): readonly Exchange[] {
    const rest = (exchanges.get(socket) ?? []).filter(({ response }) => !response.writableFinished);
    exchanges.set(socket, rest);
    return rest;
  }

  /** True if everything waits for the peer. */
  function waitsForPeer(socket: Socket): boolean {
    if (socket.writableLength > 0) return true;
    // Requests are answered in their order: those behind the first wait for it.
    const [first] = unanswered(socket);
    // Between two requests only the peer can act. The server limits how long that lasts.
    if (first === undefined) return true;
    // The gateway has to take the bytes that came and were not read yet. While that lasts, the silence is its own.
    return !first.incoming.complete && first.incoming.readableLength === 0;
  }

  server.setTimeout(milliseconds, (socket) => {
    const before = socket.bytesRead;
    // After a stretch in which this thread was busy, timers run before sockets are looked at.
    setImmediate(() => {
      if (socket.destroyed) return;
      if (socket.bytesRead === before && waitsForPeer(socket)) socket.destroy();
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
