/** A program of another user of this machine that listens where it can, and keeps what it is told. Needs root. */
import { spawn } from "node:child_process";
import { until } from "./child.ts";

export const STRANGER = 54321;

/** argv: a port, or a path. While another program has the place, it is tried again. */
const LISTENS = `
import json, selectors, socket, sys, time
at = sys.argv[1]
def listen():
    if at.isdigit(): return socket.create_server(("127.0.0.1", int(at)))
    server = socket.socket(socket.AF_UNIX)
    server.bind(at)
    server.listen()
    return server
while True:
    try:
        server = listen()
        break
    except OSError:
        time.sleep(0.001)
print("listens", server.getsockname()[1] if at.isdigit() else 0, flush=True)
waiting = selectors.DefaultSelector()
waiting.register(server, selectors.EVENT_READ)
while True:
    for key, _ in waiting.select():
        one = key.fileobj
        if one is server:
            waiting.register(server.accept()[0], selectors.EVENT_READ)
            continue
        try:
            bytes = one.recv(65536)
        except OSError:
            bytes = b""
        if bytes: print("heard", json.dumps(bytes.decode(errors="replace")), flush=True)
        else:
            waiting.unregister(one)
            one.close()
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
  // The program of this process may lie in a folder that other users cannot look into.
  const child = spawn("/usr/bin/python3", ["-c", LISTENS, String(at)], {
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
