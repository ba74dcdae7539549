/** The way from a mount to its gateway, as a proxy that does on request what networks and gateways do. */
import { connect, createServer, type Socket } from "node:net";

export type Trouble =
  | "none"
  /** Takes connections and bytes, and never says a word. */
  | "frozen"
  /** Refuses connections; those that were there break. */
  | "dead"
  /** What begins an answer comes back, then a byte a second. */
  | "slow";

export interface Way {
  readonly baseUrl: string;
  become(trouble: Trouble): Promise<void>;
  end(): Promise<void>;
}

const BYTE_MS = 1000;
/** Enough for the head of an answer, too little for what follows it. */
const BEGINNING = 450;

export async function wayTo(gateway: { readonly baseUrl: string }): Promise<Way> {
  const { hostname, port } = new URL(gateway.baseUrl);
  let trouble: Trouble = "none";
  const pairs = new Set<readonly [Socket, Socket]>();
  const server = createServer((near) => {
    const far = connect(Number(port), hostname);
    const pair = [near, far] as const;
    pairs.add(pair);
    let waiting = Buffer.alloc(0);
    let atOnce = 0;
    const slowly = setInterval(() => {
      if (trouble !== "slow" || waiting.length === 0) return;
      near.write(waiting.subarray(0, 1));
      waiting = waiting.subarray(1);
    }, BYTE_MS);
    const over = () => {
      clearInterval(slowly);
      near.destroy();
      far.destroy();
      pairs.delete(pair);
    };
    near.on("data", (bytes) => {
      atOnce = BEGINNING;
      if (trouble !== "frozen") far.write(bytes);
    });
    far.on("data", (bytes) => {
      if (trouble === "none") near.write(bytes);
      if (trouble !== "slow") return;
      if (atOnce > 0) near.write(bytes.subarray(0, atOnce));
      waiting = Buffer.concat([waiting, bytes.subarray(atOnce)]);
      atOnce = Math.max(0, atOnce - bytes.length);
    });
    for (const socket of pair) socket.on("error", over).on("close", over);
  });
  const listen = (at: number) => new Promise<void>((resolve) => server.listen(at, "127.0.0.1", resolve));
  const close = () => new Promise<void>((resolve) => (server.listening ? server.close(() => resolve()) : resolve()));
  await listen(0);
  const own = (server.address() as { port: number }).port;
  const breakAll = () => {
    for (const [near, far] of pairs) {
      near.destroy();
      far.destroy();
    }
  };
  return {
    baseUrl: `http://127.0.0.1:${own}`,
    async become(next) {
      trouble = next;
      if (next === "dead") {
        breakAll();
        await close();
      } else if (!server.listening) await listen(own);
    },
    async end() {
      breakAll();
      await close();
    },
  };
}
