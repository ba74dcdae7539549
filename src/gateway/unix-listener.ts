/**
 * A Unix socket beside the port of a server, which only its owner may use. The server treats its connections like any
 * others.
 */
import { chmodSync, rmSync } from "node:fs";
import type { Server } from "node:http";
import { createServer, type Socket } from "node:net";
import { socketAddress } from "../lib/socket-address.ts";

export interface UnixListener {
  /** True if a connection came by the socket: then it is the owner's. */
  has(socket: Socket): boolean;
  /** Accepts no more connections; resolves when those of the socket are gone. */
  close(): Promise<void>;
}

/** Replaces a socket left there by a gateway that was killed; removes the path at the end. */
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
      // Later errors (no descriptor left) concern single connections.
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
