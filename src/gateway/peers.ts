/**
 * Connections whose peer is silent are broken. Only its own silence counts: it owes the rest of a
 * body it has begun, or does not take what was sent to it. Whoever waits for the gateway may wait
 * for as long as that takes. Knows nothing of what a request is.
 */
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";

export interface PeerWatch {
  /** A request has come; the connection's earlier ones are over. */
  begin(incoming: IncomingMessage, response: ServerResponse): void;
}

/** `milliseconds`: for so long nothing moved on the connection, in either direction. */
export function breakSilentPeers(server: Server, milliseconds: number): PeerWatch {
  const latest = new WeakMap<Socket, { readonly incoming: IncomingMessage; readonly response: ServerResponse }>();

  /** Whether it is the peer that everything waits for. */
  function isAwaited(socket: Socket): boolean {
    if (socket.writableLength > 0) return true;
    const exchange = latest.get(socket);
    // Between two requests there is only the peer; the server says how long that may last.
    if (exchange === undefined || exchange.response.writableFinished) return true;
    // What came and is not looked at yet is the gateway's to take: its silence, while that lasts.
    return !exchange.incoming.complete && exchange.incoming.readableLength === 0;
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
      latest.set(incoming.socket, { incoming, response });
    },
  };
}
