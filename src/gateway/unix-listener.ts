/** A Unix socket beside a server's port, which only its owner may use. Its connections are the server's like any others. */
import { chmodSync, rmSync } from "node:fs";
import type { Server } from "node:http";
import { createServer, type Socket } from "node:net";
import { socketAddress } from "../lib/socket-address.ts";

export interface UnixListener {
  /** Whether a connection came by it: only its owner's can. */
  has(socket: Socket): boolean;
  /** Takes nobody in any more; resolves when those who came by it are gone. */
  close(): Promise<void>;
}

/** One left over there by a gateway that was killed is replaced; the path is removed at the end. */
export async function openUnixListener(path: string, server: Server): Promise<UnixListener> {
  const sockets = new WeakSet<Socket>();
  const listener = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    server.emit("connection", socket);
  });
  rmSync(path, { force: true });
  const address = socketAddress(path);
  try {
    await new Promise<void>((resolve, reject) => {
      // Later ones (no descriptor left) are of single connections.
      listener.on("error", reject);
      listener.listen(address.path, resolve);
    });
    chmodSync(path, 0o600);
  } catch (error) {
    address.close();
    throw error;
  }
  return {
    has: (socket) => sockets.has(socket),
    close: () =>
      new Promise((resolve) => {
        listener.close(() => {
          address.close();
          resolve();
        });
      }),
  };
}
