/** The error numbers of what cannot be. */
import assert from "node:assert/strict";
import {
  closeSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  statSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { type Cases, fails, names, python, sh } from "./case.ts";

export const refusalCases: Cases = {
  "ENOENT: below and at what is not there"(dir) {
    const none = join(dir, "none");
    for (const path of [none, join(none, "below"), join(none, "..", "above")]) {
      fails("ENOENT", () => readFileSync(path));
      fails("ENOENT", () => statSync(path));
      fails("ENOENT", () => readdirSync(path));
      fails("ENOENT", () => unlinkSync(path));
      fails("ENOENT", () => rmdirSync(path));
    }
    fails("ENOENT", () => mkdirSync(join(none, "below")));
    fails("ENOENT", () => writeFileSync(join(none, "below"), ""));
    assert.deepEqual(names(dir), []);
  },

  "ENOTDIR: below a file"(dir) {
    writeFileSync(join(dir, "f"), "");
    const below = join(dir, "f", "below");
    fails("ENOTDIR", () => statSync(below));
    fails("ENOTDIR", () => writeFileSync(below, ""));
    fails("ENOTDIR", () => mkdirSync(below));
    fails("ENOTDIR", () => unlinkSync(below));
    fails("ENOTDIR", () => readdirSync(join(dir, "f")));
    fails("ENOTDIR", () => statSync(`${join(dir, "f")}/`));
    python(dir, `equal(code(os.open, "f", os.O_RDONLY | os.O_DIRECTORY), "ENOTDIR")`);
  },

  "EISDIR: a folder where a file is wanted"(dir) {
    mkdirSync(join(dir, "d"));
    fails("EISDIR", () => openSync(join(dir, "d"), "w"));
    fails("EISDIR", () => openSync(join(dir, "d"), "r+"));
    fails("EISDIR", () => truncateSync(join(dir, "d")));
    fails("EISDIR", () => readFileSync(join(dir, "d")));
  },

  "EEXIST and ENOTEMPTY"(dir) {
    sh(dir, "mkdir d; touch f d/g");
    fails("EEXIST", () => mkdirSync(join(dir, "d")));
    fails("EEXIST", () => mkdirSync(join(dir, "f")));
    fails("EEXIST", () => linkSync(join(dir, "f"), join(dir, "d")));
    fails("ENOTEMPTY", () => rmdirSync(join(dir, "d")));
  },

  "EINVAL and EBADF: what no call may ask"(dir) {
    python(
      dir,
      `
put("f", "x"); fd = os.open("f", os.O_RDWR)
equal(code(os.ftruncate, fd, -1), "EINVAL")
equal(code(os.lseek, fd, -1, os.SEEK_SET), "EINVAL")
equal(code(os.rmdir, "./."), "EINVAL")
equal(code(renameat2, "f", "g", NOREPLACE | EXCHANGE), "EINVAL")
reader = os.open("f", os.O_RDONLY)
equal(code(os.write, reader, b"y"), "EBADF")
equal(code(os.read, os.open("f", os.O_WRONLY), 1), "EBADF")
equal(code(os.ftruncate, reader, 0), "EINVAL")
`,
    );
  },

  "EACCES: what the modes forbid to others"(dir) {
    python(
      dir,
      `
if os.getuid() != 0: not_here("needs root to become another")
os.chmod(".", 0o755); put("secret", "x"); os.chmod("secret", 0o600); put("open", "y"); os.chmod("open", 0o644)
child = os.fork()
if child == 0:
    try:
        os.setgid(65534); os.setuid(65534)
        if code(os.stat, "open") == "EACCES": os._exit(13)
        equal((code(get, "secret"), code(put, "open"), code(put, "new"), code(os.unlink, "open"), code(os.chmod, "open", 0o777)), ("EACCES", "EACCES", "EACCES", "EACCES", "EPERM"))
        equal(get("open"), b"y")
        os._exit(0)
    except BaseException as e:
        print(repr(e), file=sys.stderr, flush=True); os._exit(1)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
if status == 13: not_here("other users are not let in")
equal(status, 0)
`,
    );
  },

  "EXDEV: no hard link out of the disk"(dir) {
    python(
      dir,
      `
put("f")
equal(code(os.link, "f", "/proc/self/f") in ("EXDEV", "EACCES", "ENOENT"), True)
equal(code(os.link, "/proc/self/status", "g"), "EXDEV")
`,
    );
  },

  "EFBIG or EINVAL: a size no file has"(dir) {
    python(
      dir,
      `
fd = os.open("f", os.O_CREAT | os.O_RDWR)
equal(code(os.ftruncate, fd, 2**63 - 1) in ("EFBIG", "EINVAL"), True)
os.ftruncate(fd, 0)
equal(os.fstat(fd).st_size, 0)
`,
    );
    closeSync(openSync(join(dir, "f"), "r"));
  },
};
