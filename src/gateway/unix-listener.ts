/** A Unix socket beside a server's port, which only its owner may use. Its connections are the server's like any others. */
import { chmodSync, rmSync } from "node:fs";
import type { Server } from "node:http";
import { createServer } from "node:net";
import { socketAddress } from "../lib/socket-address.ts";

export interface UnixListener {
  /** Takes nobody in any more; resolves when those who came by it are gone. */
  close(): Promise<void>;
}

/** One left over there by a gateway that was killed is replaced; the path is removed at the end. */
export async function openUnixListener(path: string, server: Server): Promise<UnixListener> {
  const listener = createServer({ allowHalfOpen: true }, (socket) => server.emit("connection", socket));
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
    close: () =>
      new Promise((resolve) => {
        listener.close(() => {
          address.close();
          resolve();
        });
      }),
  };
}
