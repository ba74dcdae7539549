/**
 * Finds the user whose program listens at a port of this machine, by the kernel's list (/proc/net/tcp). When a gateway
 * has ended, another user's program may take its port. Without TLS and without this check it would get the token.
 */
import { closeSync, openSync, readSync } from "node:fs";
import { hasCode } from "../lib/system-error.ts";

const BLOCK_BYTES = 64 * 1024;
const LISTENS = "0A";
const MAPPED = /^::ffff:(?=\d+\.)/;
const ANY_6 = "0".repeat(32);

/** `address` has the form of `socket.remoteAddress`. */
export function isLoopback(address: string): boolean {
  return address.replace(MAPPED, "").startsWith("127.") || address === "::1";
}

/**
 * The users whose programs are reached at a loopback address. Empty: no program listens there, and only a firewall rule
 * of root's can forward the connection. `folder`: for tests. Throws the system's error when the list cannot be read.
 */
export function listeningUsers(address: string, port: number, folder = "/proc/net"): number[] {
  const four = address.replace(MAPPED, "");
  const own = wordOf(four.includes(".") ? four.split(".").map(Number) : [0, 0, 0, 1]);
  // The most exact address wins.
  const places = four.includes(".")
    ? ([
        ["tcp", own],
        ["tcp", "0".repeat(8)],
        ["tcp6", `${"0".repeat(16)}${wordOf([0, 0, 255, 255])}${own}`],
        ["tcp6", ANY_6],
      ] as const)
    : ([
        ["tcp6", `${"0".repeat(24)}${own}`],
        ["tcp6", ANY_6],
      ] as const);
  for (const [file, place] of places) {
    const at = `${place}:${port.toString(16).toUpperCase().padStart(4, "0")}`;
    const users = readListeners(`${folder}/${file}`).flatMap((listener) => (listener.at === at ? [listener.user] : []));
    if (users.length > 0) return users;
  }
  return [];
}

/** Four bytes of an address in the form that the kernel prints: one number in this machine's byte order. */
function wordOf(bytes: readonly number[]): string {
  const [word = 0] = new Uint32Array(Uint8Array.from(bytes).buffer);
  return word.toString(16).toUpperCase().padStart(8, "0");
}

interface Listener {
  readonly at: string;
  readonly user: number;
}

/** The kernel lists all listeners before the connections, of which there may be very many. */
function readListeners(path: string): Listener[] {
  const found: Listener[] = [];
  for (const line of linesOf(path)) {
    const [, at = "", , state, , , , user] = line.trim().split(/\s+/);
    if (at === "local_address") continue;
    if (state !== LISTENS) break;
    found.push({ at, user: Number(user) });
  }
  return found;
}

function* linesOf(path: string): Generator<string> {
  const descriptor = openIfThere(path);
  if (descriptor === undefined) return;
  try {
    const block = Buffer.alloc(BLOCK_BYTES);
    for (let rest = ""; ; ) {
      const lines = (rest + block.toString("latin1", 0, readSync(descriptor, block))).split("\n");
      rest = lines.pop() ?? "";
      if (lines.length === 0 && rest === "") return;
      yield* lines;
    }
  } finally {
    closeSync(descriptor);
  }
}

/** Undefined: the kernel has no IPv6, and so no list for it. */
function openIfThere(path: string): number | undefined {
  try {
    return openSync(path, "r");
  } catch (error) {
    if (hasCode(error, "ENOENT") && path.endsWith("6")) return undefined;
    throw error;
  }
}
