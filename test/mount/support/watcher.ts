/** A program that watches folders and files (inotify), and what it hears. */
import { existsSync, readFileSync } from "node:fs";
import { until } from "../../support/child.ts";
import type { Place } from "../../support/wsfs.ts";

const WATCH = `
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
NAMES = {2: "MODIFY", 4: "ATTRIB", 8: "CLOSE_WRITE", 64: "MOVED_FROM", 128: "MOVED_TO", 256: "CREATE", 512: "DELETE",
         1024: "DELETE_SELF", 2048: "MOVE_SELF", 16384: "OVERFLOW"}
fd = libc.inotify_init()
watched = {}
os.chdir(sys.argv[1])
for path in sys.argv[3:]:
    wd = libc.inotify_add_watch(fd, path.encode(), sum(NAMES))
    if wd < 0: sys.exit(os.strerror(ctypes.get_errno()) + ": " + path)
    watched[wd] = path
out = open(sys.argv[2], "a", buffering=1)
os.chdir("/")
print("ready", file=out)
while True:
    data = os.read(fd, 65536)
    while data:
        wd, mask, cookie, length = struct.unpack_from("iIII", data)
        name = data[16:16 + length].rstrip(b"\\0").decode()
        data = data[16 + length:]
        for bit, what in NAMES.items():
            if mask & bit: print(what, watched.get(wd, "?") + ("/" + name if name else ""), file=out)
`;

export interface Watcher {
  /** All it heard so far, in order: the event and the path as it was watched. */
  heard(): string[];
  /** Resolves when it has heard all of these, in whatever order. */
  hears(events: readonly string[], limitMs?: number): Promise<void>;
  /** What was heard so far is forgotten. */
  forget(): void;
  end(): void;
}

let count = 0;

/** Paths are below the folder. */
export async function watch(place: Place, folder: string, paths: readonly string[]): Promise<Watcher> {
  const out = place.path(`events-${++count}`);
  const child = place.spawn("/usr/bin/python3", ["-c", WATCH, folder, out, ...paths]);
  let complaint = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    complaint += text;
  });
  const lines = () => (existsSync(out) ? readFileSync(out, "utf8").split("\n").slice(0, -1) : []);
  let from = 1;
  await until("it watches", () => {
    if (complaint !== "") throw new Error(complaint);
    return lines()[0] === "ready";
  });
  const heard = () => lines().slice(from);
  return {
    heard,
    async hears(events, limitMs) {
      const missing = () => events.filter((event) => !heard().includes(event));
      await until(`events: ${events.join(", ")}`, () => missing().length === 0, limitMs).catch(() => {
        throw new Error(`not heard: ${missing().join(", ")}; heard: ${heard().join(", ")}`);
      });
    },
    forget() {
      from = lines().length;
    },
    end: () => child.kill("SIGKILL"),
  };
}
