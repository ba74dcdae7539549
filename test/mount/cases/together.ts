/** Locks, and many processes at once. */
import assert from "node:assert/strict";
import { type Cases, names, python, sh, text } from "./case.ts";

/** `forked(n, action)` runs action(i) in n processes at once, all of which must succeed. */
const FORKED = `
def forked(count, action):
    children = []
    for i in range(count):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                action(i); status = 0
            except BaseException as e: print(f"process {i}: {e!r}", file=sys.stderr, flush=True)
            os._exit(status)
        children.append(child)
    equal([os.waitstatus_to_exitcode(os.waitpid(c, 0)[1]) for c in children], [0] * count)
`;

export const togetherCases: Cases = {
  "flock: shared with shared, exclusive with none, freed by the end of the process"(dir) {
    python(
      dir,
      `${FORKED}
put("f")
one = os.open("f", os.O_RDWR); fcntl.flock(one, fcntl.LOCK_SH)
def shared(i):
    two = os.open("f", os.O_RDWR)
    fcntl.flock(two, fcntl.LOCK_SH | fcntl.LOCK_NB)
    equal(code(fcntl.flock, two, fcntl.LOCK_EX | fcntl.LOCK_NB), "EAGAIN")
forked(3, shared)
fcntl.flock(one, fcntl.LOCK_EX | fcntl.LOCK_NB)
forked(1, lambda i: equal(code(fcntl.flock, os.open("f", os.O_RDWR), fcntl.LOCK_SH | fcntl.LOCK_NB), "EAGAIN"))
fcntl.flock(one, fcntl.LOCK_UN)
forked(1, lambda i: fcntl.flock(os.open("f", os.O_RDWR), fcntl.LOCK_EX | fcntl.LOCK_NB))
fcntl.flock(one, fcntl.LOCK_EX | fcntl.LOCK_NB)
`,
    );
  },

  "flock(1) waits for its turn"(dir) {
    sh(
      dir,
      "touch lock; for i in $(seq 20); do flock lock sh -c 'n=$(cat count 2> /dev/null || echo 0); echo $((n + 1)) > count' & done; wait",
    );
    assert.equal(text(dir, "count"), "20\n");
  },

  "fcntl locks hold ranges, between processes"(dir) {
    python(
      dir,
      `${FORKED}
put("f", "x" * 100)
fd = os.open("f", os.O_RDWR)
fcntl.lockf(fd, fcntl.LOCK_EX, 10, 20)
def other(i):
    mine = os.open("f", os.O_RDWR)
    assert code(fcntl.lockf, mine, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 25) in ("EAGAIN", "EACCES"), "the range is not held"
    fcntl.lockf(mine, fcntl.LOCK_EX | fcntl.LOCK_NB, 20, 0)
    fcntl.lockf(mine, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, 30)
forked(1, other)
fcntl.lockf(fd, fcntl.LOCK_UN, 10, 20)
forked(1, lambda i: fcntl.lockf(os.open("f", os.O_RDWR), fcntl.LOCK_EX | fcntl.LOCK_NB))
`,
    );
  },

  "50 processes append to one file: every line is there, whole"(dir) {
    python(
      dir,
      `${FORKED}
def append(i):
    fd = os.open("log", os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    for k in range(20): os.write(fd, f"process {i} line {k}\\n".encode())
    os.close(fd)
forked(50, append)
equal(sorted(get("log").decode().splitlines()), sorted(f"process {i} line {k}" for i in range(50) for k in range(20)))
`,
    );
  },

  "50 processes make files of their own at once"(dir) {
    python(
      dir,
      `${FORKED}
def make(i):
    os.makedirs(f"d{i % 7}", exist_ok=True)
    for k in range(10):
        put(f"d{i % 7}/{i}-{k}.part", f"{i} {k}" * 100)
        os.rename(f"d{i % 7}/{i}-{k}.part", f"d{i % 7}/{i}-{k}")
forked(50, make)
for i in range(50):
    for k in range(10): equal(get(f"d{i % 7}/{i}-{k}").decode(), f"{i} {k}" * 100)
equal(sum(len(files) for _, _, files in os.walk(".")), 500)
`,
    );
  },

  "of 50 that make one name with O_EXCL, one succeeds"(dir) {
    python(
      dir,
      `${FORKED}
def make(i):
    try: fd = os.open("name", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    except FileExistsError: return
    os.write(fd, b"mine"); os.close(fd); put(f"won-{i}")
forked(50, make)
equal((get("name"), len(os.listdir("."))), (b"mine", 2))
`,
    );
  },

  "50 processes save one file over: it always has one whole content"(dir) {
    python(
      dir,
      `${FORKED}
put("f", "0" * 5000)
def save(i):
    for k in range(4):
        put(f"t{i}", chr(65 + i % 26) * (4000 + i)); os.rename(f"t{i}", "f")
        data = get("f")
        assert len(set(data)) == 1 and 4000 <= len(data) <= 5000, "torn"
forked(50, save)
equal(os.listdir("."), ["f"])
`,
    );
    assert.deepEqual(names(dir), ["f"]);
  },

  "writers at different places of one file do not disturb each other"(dir) {
    python(
      dir,
      `${FORKED}
put("f")
def write(i):
    fd = os.open("f", os.O_WRONLY)
    for k in range(20): os.pwrite(fd, bytes([i]) * 1000, (k * 16 + i) * 1000)
    os.close(fd)
forked(16, write)
data = get("f")
equal(len(data), 320000)
for n in range(320): equal(set(data[n * 1000:(n + 1) * 1000]), {n % 16})
`,
    );
  },
};
