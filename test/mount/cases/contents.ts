/** Contents of files: written, read, cut, extended. */
import assert from "node:assert/strict";
import {
  appendFileSync,
  chmodSync,
  closeSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readFileSync,
  readSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { type Cases, pattern, python, sh, sha256, stat, text } from "./case.ts";

const MIB = 1024 * 1024;

export const contentCases: Cases = {
  "an empty file stays empty"(dir) {
    writeFileSync(join(dir, "empty"), "");
    assert.equal(stat(dir, "empty").size, 0n);
    assert.equal(readFileSync(join(dir, "empty")).length, 0);
  },

  "10 MiB come back as written"(dir) {
    const bytes = pattern(10 * MIB + 3);
    writeFileSync(join(dir, "big"), bytes);
    assert.equal(stat(dir, "big").size, BigInt(bytes.length));
    assert.equal(sha256(readFileSync(join(dir, "big"))), sha256(bytes));
  },

  "each write is seen at once by whoever has the file open"(dir) {
    const path = join(dir, "f");
    const writer = openSync(path, "w");
    const reader = openSync(path, "r");
    for (let i = 0; i < 100; i++) {
      writeSync(writer, `${i};`);
      assert.equal(fstatSync(reader).size, fstatSync(writer).size);
    }
    const whole = Buffer.alloc(1000);
    const length = readSync(reader, whole, 0, 1000, 0);
    assert.equal(whole.toString("utf8", 0, length), Array.from({ length: 100 }, (_, i) => `${i};`).join(""));
    assert.equal(stat(path).size, BigInt(length));
    closeSync(writer);
    closeSync(reader);
  },

  "appending goes to the end, wherever others write"(dir) {
    const path = join(dir, "log");
    const one = openSync(path, "a");
    const two = openSync(path, "a");
    for (let i = 0; i < 10; i++) {
      writeSync(one, "1");
      writeSync(two, "2");
      appendFileSync(path, "3");
    }
    closeSync(one);
    closeSync(two);
    assert.equal(text(path), "123".repeat(10));
  },

  "a part is overwritten in place"(dir) {
    const path = join(dir, "f");
    const bytes = pattern(300_000);
    writeFileSync(path, bytes);
    const fd = openSync(path, "r+");
    for (const at of [0, 4095, 131_071, 299_990]) {
      writeSync(fd, "0123456789", at);
      bytes.write("0123456789", at);
    }
    closeSync(fd);
    assert.deepEqual(readFileSync(path), bytes);
  },

  "what was never written between two writes is zeros"(dir) {
    const path = join(dir, "holes");
    const fd = openSync(path, "w+");
    writeSync(fd, "end", 5_000_000);
    writeSync(fd, "middle", 1_000_001);
    closeSync(fd);
    const expected = Buffer.alloc(5_000_003);
    expected.write("end", 5_000_000);
    expected.write("middle", 1_000_001);
    assert.equal(sha256(readFileSync(path)), sha256(expected));
  },

  "ftruncate cuts, and what it adds is zeros"(dir) {
    const path = join(dir, "f");
    writeFileSync(path, pattern(100_000));
    const fd = openSync(path, "r+");
    ftruncateSync(fd, 50_001);
    assert.equal(fstatSync(fd).size, 50_001);
    ftruncateSync(fd, 120_000);
    ftruncateSync(fd, 120_000);
    closeSync(fd);
    assert.deepEqual(readFileSync(path), Buffer.concat([pattern(100_000).subarray(0, 50_001), Buffer.alloc(69_999)]));
  },

  "truncate by path, also of an open file"(dir) {
    const path = join(dir, "f");
    writeFileSync(path, pattern(10_000));
    const fd = openSync(path, "r+");
    truncateSync(path, 100);
    assert.equal(fstatSync(fd).size, 100);
    writeSync(fd, "x", 199);
    closeSync(fd);
    truncateSync(path, 300);
    assert.deepEqual(
      readFileSync(path),
      Buffer.concat([pattern(100), Buffer.alloc(99), Buffer.from("x"), Buffer.alloc(100)]),
    );
  },

  "O_TRUNC empties, for every handle"(dir) {
    const path = join(dir, "f");
    writeFileSync(path, "a long text");
    const reader = openSync(path, "r");
    closeSync(openSync(path, "w"));
    assert.equal(fstatSync(reader).size, 0);
    assert.equal(readSync(reader, Buffer.alloc(10), 0, 10, 0), 0);
    closeSync(reader);
    assert.equal(stat(path).size, 0n);
  },

  "a handle keeps its right when the mode is taken away"(dir) {
    const path = join(dir, "f");
    const fd = openSync(path, "wx", 0o444);
    chmodSync(path, 0);
    writeSync(fd, "still");
    closeSync(fd);
    chmodSync(path, 0o600);
    assert.equal(text(path), "still");
  },

  "a new file has the mode asked for, less the umask"(dir) {
    python(
      dir,
      `
for umask, asked in ((0, 0o666), (0o022, 0o777), (0o077, 0o644), (0o027, 0o4755)):
    os.umask(umask)
    name = f"{umask:o}-{asked:o}"
    os.close(os.open(name, os.O_CREAT | os.O_WRONLY, asked))
    os.mkdir(name + ".d", asked & 0o777)
    equal(stat.S_IMODE(os.stat(name).st_mode), asked & ~umask)
    equal(stat.S_IMODE(os.stat(name + ".d").st_mode), asked & 0o777 & ~umask)
`,
    );
  },

  "fsync and fdatasync of files and folders"(dir) {
    python(
      dir,
      `
fd = os.open("f", os.O_CREAT | os.O_RDWR)
os.write(fd, b"synced"); os.fsync(fd)
os.write(fd, b", twice"); os.fdatasync(fd)
folder = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
os.fsync(folder); os.fdatasync(folder)
fd2 = os.open("g", os.O_CREAT | os.O_WRONLY | os.O_SYNC)
os.write(fd2, b"sync"); os.close(fd2)
equal(get("f"), b"synced, twice"); equal(get("g"), b"sync")
`,
    );
    const fd = openSync(join(dir, "f"), "r");
    fsyncSync(fd);
    closeSync(fd);
    sh(dir, "sync -f .");
  },

  "a file is read to its end and not beyond"(dir) {
    writeFileSync(join(dir, "f"), pattern(10_000));
    const fd = openSync(join(dir, "f"), "r");
    const buffer = Buffer.alloc(20_000);
    assert.equal(readSync(fd, buffer, 0, 20_000, 0), 10_000);
    assert.equal(readSync(fd, buffer, 0, 100, 9_990), 10);
    assert.equal(readSync(fd, buffer, 0, 100, 10_000), 0);
    assert.equal(readSync(fd, buffer, 0, 100, 1e12), 0);
    closeSync(fd);
  },

  "mapped for sharing: what is stored is in the file, and the other way round"(dir) {
    python(
      dir,
      `
put("f", bytes(10000))
with open("f", "r+b") as f:
    m = mmap.mmap(f.fileno(), 10000)
    m[5000:5005] = b"store"
    m.flush()
    equal(os.pread(os.open("f", os.O_RDONLY), 7, 4999), b"\\0store\\0")
    os.pwrite(f.fileno(), b"write", 100)
    equal(m[100:105], b"write")
    m[9995:10000] = b"close"
    m.close()
data = get("f")
equal((len(data), data[5000:5005], data[100:105], data[9995:]), (10000, b"store", b"write", b"close"))
`,
    );
  },

  "a mapping stays usable after the file is closed"(dir) {
    python(
      dir,
      `
put("f", b"." * 8192)
with open("f", "r+b") as f: m = mmap.mmap(f.fileno(), 8192)
m[0:5] = b"after"
m[8187:8192] = b"close"
equal(get("f"), b"after" + b"." * 8182 + b"close")
m.close()
equal(get("f"), b"after" + b"." * 8182 + b"close")
`,
    );
  },

  "what is stored in a hole through a mapping is no hole for who looks for data"(dir) {
    python(
      dir,
      `
with open("f", "w+b") as f: f.truncate(1 << 20)
with open("f", "r+b") as f: m = mmap.mmap(f.fileno(), 1 << 20)
m[500000:500005] = b"store"
fd = os.open("f", os.O_RDONLY)
assert os.lseek(fd, 400000, os.SEEK_DATA) <= 500000
subprocess.run(["cp", "--sparse=auto", "f", "copy"], check=True)
equal(get("copy")[499999:500006], b"\\0store\\0")
m.close()
equal(get("f")[499999:500006], b"\\0store\\0")
`,
    );
  },

  "a private mapping changes nothing"(dir) {
    python(
      dir,
      `
put("f", b"original")
with open("f", "r+b") as f:
    m = mmap.mmap(f.fileno(), 8, flags=mmap.MAP_PRIVATE)
    m[0:8] = b"changed!"
    m.close()
equal(get("f"), b"original")
`,
    );
  },

  "O_DIRECT reads and writes the same bytes"(dir) {
    python(
      dir,
      `
put("f", b"a" * 16384)
try: fd = os.open("f", os.O_RDWR | os.O_DIRECT)
except OSError as e:
    equal(errno.errorcode[e.errno], "EINVAL")
    not_here("O_DIRECT is not allowed")
page = mmap.mmap(-1, 4096)
page.write(b"b" * 4096)
equal(os.pwritev(fd, [page], 8192), 4096)
equal(os.preadv(fd, [page], 4096), 4096)
equal(page[:], b"a" * 4096)
equal(os.preadv(fd, [page], 8192), 4096)
equal(page[:], b"b" * 4096)
os.close(fd)
equal(get("f"), b"a" * 8192 + b"b" * 4096 + b"a" * 4096)
`,
    );
  },

  "writing changes mtime and ctime, reading does not"(dir) {
    python(
      dir,
      `
put("f", b"x"); os.utime("f", ns=(10**18, 10**18))
before = os.stat("f")
equal(before.st_mtime_ns, 10**18)
get("f")
equal((os.stat("f").st_mtime_ns, os.stat("f").st_ctime_ns), (before.st_mtime_ns, before.st_ctime_ns))
fd = os.open("f", os.O_WRONLY)
os.write(fd, b"y")
written = os.stat("f").st_mtime_ns
assert written > 10**18, "the time is as old as before"
equal(os.fstat(fd).st_mtime_ns, written)
os.close(fd)
equal(os.stat("f").st_mtime_ns, written)
`,
    );
  },
};
