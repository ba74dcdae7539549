/**
 * The system calls Node lacks, made for tests by a Python child on an inherited descriptor: no
 * addon is needed to test what is built on them. Slow (about 30 ms a call), but the real calls.
 */
import { spawnSync } from "node:child_process";
import type { SystemCalls } from "../../src/content/disk-files.ts";
import { systemError } from "../../src/lib/system-error.ts";

const PROGRAM = `
import ctypes, errno, fcntl, json, os, sys
call, a = sys.argv[1], json.loads(sys.argv[2])
def seek(fd, kind, offset):
    try: return os.lseek(fd, offset, os.SEEK_DATA if kind == "data" else os.SEEK_HOLE)
    except OSError as e:
        if e.errno == errno.ENXIO: return None
        raise
def lock():
    try: fcntl.flock(3, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError: return False
    return True
def times(mtime):
    s = os.fstat(3)
    os.utime(3, ns=(s.st_atime_ns, mtime))
def fallocate(mode, offset, length):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.fallocate(3, mode, ctypes.c_long(offset), ctypes.c_long(length)) != 0:
        raise OSError(ctypes.get_errno(), "fallocate")
def clone():
    size = os.fstat(3).st_size
    os.ftruncate(4, size)
    at = seek(3, "data", 0)
    while at is not None:
        end = seek(3, "hole", at)
        while at < end: at += os.pwrite(4, os.pread(3, min(end - at, 1 << 20), at), at)
        at = seek(3, "data", end)
calls = {"seek": lambda: seek(3, *a), "lock": lock, "times": lambda: times(int(a[0])), "fallocate": lambda: fallocate(*a), "clone": clone}
try: print(json.dumps({"value": calls[call]()}))
except OSError as e: print(json.dumps({"code": errno.errorcode[e.errno]}))
`;

function run(call: string, fds: readonly number[], args: readonly unknown[] = []): unknown {
  const child = spawnSync("python3", ["-c", PROGRAM, call, JSON.stringify(args)], {
    stdio: ["ignore", "pipe", "inherit", ...fds],
    encoding: "utf8",
  });
  const answer: { value?: unknown; code?: string } = JSON.parse(child.output[1] ?? "");
  if (answer.code !== undefined) throw systemError(answer.code, call);
  return answer.value;
}

export const systemCalls: SystemCalls = {
  setTimes(fd, atime, mtime) {
    if (atime !== null || mtime === null) throw new RangeError("expected only a modification time");
    run("times", [fd], [String(BigInt(mtime.seconds) * 1_000_000_000n + BigInt(mtime.nanoseconds))]);
  },
  fallocate: async (fd, mode, offset, length) => void run("fallocate", [fd], [mode, offset, length]),
  seek: (fd, whence, offset) => (run("seek", [fd], [whence, offset]) as number | null) ?? undefined,
  clone: async (from, to) => void run("clone", [from, to]),
  lockFile: (fd) => run("lock", [fd]) as boolean,
};
