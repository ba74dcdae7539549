/**
 * System calls as programs make them, each in a process of its own, all at once: how long each took and
 * what it said. One that does not come back in time is killed, and it is looked whether it then ends.
 */
import { check, type Place } from "../../support/wsfs.ts";

/** What a call needs. */
export type Needs =
  /** Nothing that is not on this machine. */
  | "local"
  /** Names or attributes that only the gateway knows. */
  | "metadata"
  /** Bytes that only the gateway has. */
  | "content";

interface Call {
  readonly needs: Needs;
  /** Python; the folder is the mount. */
  readonly script: string;
}

const READ = (path: string) => `fd = os.open("${path}", os.O_RDONLY); os.pread(fd, 4096, 0); os.close(fd)`;
const WRITE = (path: string) => `fd = os.open("${path}", os.O_CREAT | os.O_WRONLY); os.write(fd, b"x" * 100)`;

/** The tree they work on is `prepare`'s and `learn`'s. */
export const CALLS: Readonly<Record<string, Call>> = {
  "ls a known folder": { needs: "local", script: 'os.listdir("known")' },
  "ls an unknown folder": { needs: "metadata", script: 'os.listdir("unknown")' },
  "stat a known name": { needs: "local", script: 'os.stat("known/cached")' },
  "stat a name that is not there": { needs: "local", script: 'os.stat("known/none")' },
  "stat in an unknown folder": { needs: "metadata", script: 'os.stat("elsewhere/f")' },
  "open, read, close: cached": { needs: "local", script: READ("known/cached") },
  "open, read, close: not cached": { needs: "content", script: READ("distant/far") },
  "read by mmap: not cached": {
    needs: "content",
    script: 'fd = os.open("distant/mapped", os.O_RDONLY); mmap.mmap(fd, 0, prot=mmap.PROT_READ)[5]',
  },
  // What is not overwritten may be fetched later.
  "open for writing: not cached": {
    needs: "local",
    script: 'fd = os.open("known/rewritten", os.O_RDWR); os.pwrite(fd, b"y", 10); os.close(fd)',
  },
  "create, write, close": { needs: "local", script: `${WRITE("known/new")}; os.close(fd)` },
  "create in an unknown folder": { needs: "metadata", script: `${WRITE("other/new")}; os.close(fd)` },
  "write, fsync": { needs: "local", script: `${WRITE("known/synced")}; os.fsync(fd)` },
  "append to a cached file": {
    needs: "local",
    script: 'fd = os.open("known/appended", os.O_APPEND | os.O_WRONLY); os.write(fd, b"z"); os.close(fd)',
  },
  "truncate: not cached": { needs: "local", script: 'os.truncate("known/cut", 10)' },
  "truncate to nothing": { needs: "local", script: 'os.truncate("known/emptied", 0)' },
  rename: { needs: "local", script: 'os.rename("known/old", "known/moved")' },
  unlink: { needs: "local", script: 'os.unlink("known/removed")' },
  mkdir: { needs: "local", script: 'os.mkdir("known/made")' },
  "rmdir of a known folder": { needs: "local", script: 'os.rmdir("known/empty")' },
  "rmdir of an unknown folder": { needs: "metadata", script: 'os.rmdir("third")' },
  chmod: { needs: "local", script: 'os.chmod("known/cached", 0o600)' },
  utime: { needs: "local", script: 'os.utime("known/cached")' },
  link: { needs: "local", script: 'os.link("known/appended", "known/name")' },
  symlink: { needs: "local", script: 'os.symlink("x", "known/s")' },
  readlink: { needs: "local", script: 'os.readlink("known/link")' },
  getxattr: { needs: "local", script: 'os.getxattr("known/cached", "user.a")' },
  setxattr: { needs: "local", script: 'os.setxattr("known/cached", "user.b", b"1")' },
  listxattr: { needs: "local", script: 'os.listxattr("known/cached")' },
  statfs: { needs: "local", script: 'os.statvfs("known")' },
  flock: { needs: "local", script: 'fd = os.open("known/cached", os.O_RDONLY); fcntl.flock(fd, fcntl.LOCK_SH)' },
  access: { needs: "local", script: 'os.access("known/cached", os.R_OK)' },
};

/** On a mount of the same workspace: a folder for each of `names`, with what the calls will meet. */
export async function prepare(place: Place, dir: string, names: readonly string[]): Promise<void> {
  check(
    await place.sh(
      `cd '${dir}' && mkdir ${names[0]} && cd ${names[0]} && mkdir known known/empty distant unknown elsewhere other third
for f in cached rewritten appended cut emptied old removed; do head -c 300000 /dev/urandom > known/$f; done
for f in far mapped; do head -c 300000 /dev/urandom > distant/$f; done
for d in unknown elsewhere other third; do head -c 1000 /dev/urandom > $d/f; done
ln -s target known/link; setfattr -n user.a -v 1 known/cached
cd .. && for name in ${names.slice(1).join(" ")}; do cp -a ${names[0]} $name; done`,
    ),
  );
}

/** On the mount that is tried: what it knows and has before the trouble comes. */
export async function learn(place: Place, dir: string): Promise<void> {
  const names = "test -e distant/far && test -L known/link && getfattr -n user.a known/cached";
  // Files beside them come too: a folder that is read in order is read ahead.
  const bytes = "cat known/cached known/appended known/emptied";
  check(await place.sh(`cd '${dir}' && ls -l . known known/empty distant && ${names} && ${bytes} > /dev/null`));
}

export interface Outcome {
  readonly call: string;
  /** Until it came back, or was ended by the signal. */
  readonly milliseconds: number;
  /** "ok" or the error's name, "interrupted" by the signal, the name of another one; "late": it did not come back; "stuck": killed, it did not end. */
  readonly said: string;
}

const RUNNER = `
import errno, fcntl, json, mmap, os, signal, sys, time
calls, limit, interrupt = json.loads(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
folder = sys.argv[4]
running = {}
for name, script in calls.items():
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        try: os.chdir(folder); exec(script); said = "ok"
        except OSError as e: said = errno.errorcode[e.errno]
        except BaseException as e: said = repr(e)
        os.write(write_end, said.encode())
        os._exit(0)
    os.close(write_end)
    running[child] = (name, read_end, time.monotonic())
def collect(until):
    while running and time.monotonic() < until:
        child, status = os.waitpid(-1, os.WNOHANG)
        if child == 0: time.sleep(0.01); continue
        name, read_end, start = running.pop(child)
        said = os.read(read_end, 100).decode() or "died"
        if os.WIFSIGNALED(status): said = {signal.SIGINT: "interrupted", signal.SIGKILL: "late"}.get(os.WTERMSIG(status)) or signal.Signals(os.WTERMSIG(status)).name
        print(json.dumps({"call": name, "milliseconds": round((time.monotonic() - start) * 1000), "said": said}), flush=True)
def everybody(what):
    for child, (name, read_end, start) in list(running.items()):
        os.kill(child, what)
        if what == signal.SIGINT: running[child] = (name, read_end, time.monotonic())
if interrupt > 0:
    collect(time.monotonic() + interrupt)
    everybody(signal.SIGINT)
collect(time.monotonic() + limit)
everybody(signal.SIGKILL)
collect(time.monotonic() + 5)
for name, _, start in running.values():
    print(json.dumps({"call": name, "milliseconds": round((time.monotonic() - start) * 1000), "said": "stuck"}))
`;

/**
 * In `dir`, all at once. `limitMs`: then those left are killed. `interruptMs`: after that long each that has
 * not come back gets SIGINT, and its time counts from there.
 */
export async function runCalls(
  place: Place,
  dir: string,
  calls: readonly string[],
  { limitMs, interruptMs = 0 }: { readonly limitMs: number; readonly interruptMs?: number },
): Promise<Outcome[]> {
  const scripts = Object.fromEntries(calls.map((name) => [name, CALLS[name]?.script]));
  const env = { RUNNER, CALLS: JSON.stringify(scripts) };
  const times = `${limitMs / 1000} ${interruptMs / 1000}`;
  // Isolated: Python would look for its modules in the current folder.
  const script = `cd / && exec /usr/bin/python3 -I -c "$RUNNER" "$CALLS" ${times} '${dir}'`;
  const { stdout } = check(await place.sh(script, { env, timeoutMs: limitMs + interruptMs + 30_000 }));
  return stdout
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Outcome);
}
