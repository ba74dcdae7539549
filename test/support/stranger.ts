/** A program of another user of this machine that listens where it can, and keeps what it is told. Needs root. */
import { spawn } from "node:child_process";
import { until } from "./child.ts";

export const STRANGER = 54321;

/** argv: a port, or a path. The place may be somebody's still: then it is tried until it is free. */
const LISTENS = `
const [at] = process.argv.slice(1);
const server = require("node:net").createServer((socket) => {
  socket.on("error", () => {});
  socket.on("data", (bytes) => process.stdout.write("heard " + JSON.stringify(String(bytes)) + "\\n"));
});
const listen = () => (/^\\d+$/.test(at) ? server.listen(Number(at), "127.0.0.1") : server.listen(at));
server.on("error", () => setTimeout(listen, 1));
server.on("listening", () => process.stdout.write("listens " + (server.address().port ?? 0) + "\\n"));
listen();
`;

export interface Stranger {
  /** 0: at a path. */
  port(): number;
  /** Resolves once it has the place. */
  listens(): Promise<void>;
  /** All that it was told by now. */
  heard(): string;
  end(): Promise<void>;
}

export function becomeStranger(at: number | string): Stranger {
  const child = spawn(process.execPath, ["-e", LISTENS, String(at)], {
    cwd: "/",
    env: {},
    uid: STRANGER,
    gid: STRANGER,
    stdio: ["ignore", "pipe", "inherit"],
  });
  let said = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    said += text;
  });
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  return {
    port: () => Number(/^listens (\d+)$/m.exec(said)?.[1]),
    listens: () => until("the stranger listens", () => said.includes("listens")),
    heard: () => said.replace(/^listens.*\n/m, ""),
    async end() {
      child.kill("SIGKILL");
      await ended;
    },
  };
}
