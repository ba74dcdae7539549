/** Modes, times, numbers, space, extended attributes. */
import assert from "node:assert/strict";
import { accessSync, constants, existsSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Cases, fails, NotHere, python, sh, stat } from "./case.ts";

export const attributeCases: Cases = {
  "chmod sets all twelve bits, of files and folders"(dir) {
    sh(dir, "mkdir d; touch f");
    for (const mode of ["0", "4755", "2750", "1777", "600", "7777", "644"]) {
      assert.equal(sh(dir, `chmod ${mode.padStart(5, "0")} f d && stat -c %a f d | uniq`), `${mode}\n`);
    }
  },

  "times are kept to the nanosecond, before 1970 and after 2038 too"(dir) {
    python(
      dir,
      `
put("f"); os.mkdir("d")
for name in ("f", "d"):
    for ns in (0, 1, 999_999_999, 1234567890_123456789, -1, -1_500_000_000, 4_000_000_000_000_000_001):
        os.utime(name, ns=(ns, ns))
        equal((os.stat(name).st_mtime_ns, os.stat(name).st_atime_ns), (ns, ns))
`,
    );
  },

  "times that ext4 cannot hold are the last, or the first, that it can"(dir) {
    const disk = sh(dir, "stat -f -c %T .").trim();
    if (disk !== "ext2/ext3" && disk !== "fuseblk" && disk !== "fuse") throw new NotHere(`the disk is ${disk}`);
    python(
      dir,
      `
FIRST, LAST = -2**31, 2**34 - 2**31 - 1
put("f", "x"); os.mkdir("d"); put("open"); keep = open("open", "r+b")
for name in ("f", "d", "open"):
    for seconds in (FIRST - 1, FIRST, LAST - 1, LAST, LAST + 1, 253402300800, 2**53 - 1, 2**53 + 1, 2**63 - 1, -2**63):
        os.utime(name, ns=(seconds * 10**9 + 5, seconds * 10**9 + 5))
        held = min(max(seconds, FIRST), LAST)
        ns = held * 10**9 + (5 if held == seconds and FIRST < held < LAST else 0)
        equal((os.stat(name).st_mtime_ns, os.stat(name).st_atime_ns), (ns, ns))
`,
    );
  },

  "touch -d, touch -r, touch alone"(dir) {
    sh(dir, "touch -d '2003-04-05 06:07:08.123456789 UTC' f && touch -r f g && mkdir d && touch -r f d");
    for (const name of ["f", "g", "d"]) assert.equal(stat(dir, name).mtimeNs, 1049522828123456789n);
    sh(dir, "touch g; test g -nt f");
  },

  "one time can be set and the other left, or set to now"(dir) {
    python(
      dir,
      `
class Timespec(ctypes.Structure): _fields_ = [("s", ctypes.c_long), ("ns", ctypes.c_long)]
NOW, OMIT = (1 << 30) - 1, (1 << 30) - 2
def utimensat(name, atime, mtime):
    pair = (Timespec * 2)(Timespec(*atime), Timespec(*mtime))
    equal(libc.utimensat(-100, name.encode(), pair, 0), 0)
put("f"); os.utime("f", ns=(5, 7))
utimensat("f", (0, OMIT), (9, 11)); equal((os.stat("f").st_atime_ns, os.stat("f").st_mtime_ns), (5, 9_000_000_011))
utimensat("f", (3, 4), (0, OMIT)); equal((os.stat("f").st_atime_ns, os.stat("f").st_mtime_ns), (3_000_000_004, 9_000_000_011))
before = time.time() - 2
utimensat("f", (0, OMIT), (0, NOW))
assert before < os.stat("f").st_mtime < time.time() + 2, "not now"
equal(os.stat("f").st_atime_ns, 3_000_000_004)
`,
    );
  },

  "a time set while the file is open for writing stays after close"(dir) {
    python(
      dir,
      `
fd = os.open("f", os.O_CREAT | os.O_WRONLY)
os.write(fd, b"content")
os.utime(fd, ns=(10**18, 1234567890_123456789)); os.fchmod(fd, 0o604)
os.close(fd)
time.sleep(0.05)
equal((os.stat("f").st_mtime_ns, stat.S_IMODE(os.stat("f").st_mode)), (1234567890_123456789, 0o604))
`,
    );
  },

  "a folder made in a set-group-id folder is one too, and nothing else"(dir) {
    python(
      dir,
      `
os.mkdir("d"); os.chmod("d", 0o2755)
os.mkdir("d/e"); os.mkdir("d/e/f"); put("d/x")
mode = lambda name: stat.S_IMODE(os.stat(name).st_mode) & 0o7000
equal([mode(name) for name in ("d/e", "d/e/f", "d/x")], [0o2000, 0o2000, 0])
os.chmod("d", 0o755); os.mkdir("d/g")
equal(mode("d/g"), 0)
`,
    );
  },

  "ctime is when it was changed, whatever mtime is set to, and never before a write"(dir) {
    python(
      dir,
      `
future = 4_000_000_000_000_000_000
for name in ("f", "d"):
    if name == "f": put(name)
    else: os.mkdir(name)
    os.utime(name, ns=(future, future))
    first = os.stat(name)
    assert abs(first.st_ctime - time.time()) < 60, first.st_ctime
    time.sleep(0.02)
    os.chmod(name, 0o700)
    second = os.stat(name)
    assert first.st_ctime_ns < second.st_ctime_ns, (first, second)
    equal(second.st_mtime_ns, future)
for turn in range(50):
    with open("w", "ab") as file: file.write(b"x")
    written = os.stat("w")
    assert written.st_ctime_ns >= written.st_mtime_ns, (turn, written)
`,
    );
  },

  "what is made or changed later is never older, looked at meanwhile or not"(dir) {
    python(
      dir,
      `
def written(name):
    with open(name, "ab") as f: f.write(b"x")
def cut(name):
    with open(name, "wb"): pass
steps = [written, cut, os.mkdir, lambda name: os.symlink("x", name), written, os.mkdir, cut, lambda name: os.utime(name)]
names = ["out", "stamp", "folder", "link", "more", "another", "out", "stamp"]
for turn in range(60):
    os.mkdir(str(turn))
    times = []
    for index, (step, name) in enumerate(zip(steps, names)):
        name = f"{turn}/{name}"
        step(name)
        if turn % 2: times.append((os.lstat(name).st_mtime_ns, index))
    if turn % 2 == 0: times = [(os.lstat(f"{turn}/{name}").st_mtime_ns, index) for index, name in list(enumerate(names))[2:]]
    equal(times, sorted(times))
`,
    );
  },

  "chmod changes ctime, not mtime"(dir) {
    python(
      dir,
      `
put("f"); before = os.stat("f")
time.sleep(0.02)
os.chmod("f", 0o600)
after = os.stat("f")
equal(after.st_mtime_ns, before.st_mtime_ns)
assert after.st_ctime_ns > before.st_ctime_ns, "ctime as before"
`,
    );
  },

  "an owner set to what it is, or left as it is, takes set-id bits from a file and not from a folder"(dir) {
    python(
      dir,
      `
put("f"); os.mkdir("d")
mode = lambda name: stat.S_IMODE(os.stat(name).st_mode)
for owner in (-1, os.getuid()):
    for name, left in (("f", 0o755), ("d", 0o6755)):
        os.chmod(name, 0o6755); os.chown(name, owner, -1)
        equal((name, oct(mode(name))), (name, oct(left)))
os.chmod("f", 0o2644); os.chown("f", -1, -1)
equal(oct(mode("f")), oct(0o2644))
fd = os.open("f", os.O_RDONLY); os.chmod("f", 0o4700); os.fchown(fd, -1, -1); os.close(fd)
equal(oct(mode("f")), oct(0o700))
`,
    );
  },

  "a writing program drops set-user-id"(dir) {
    python(
      dir,
      `
if os.getuid() != 0: not_here("needs root to become another")
os.chmod(".", 0o777); put("f", "x"); os.chmod("f", 0o6777)
child = os.fork()
if child == 0:
    try:
        os.setgid(65534); os.setuid(65534)
        fd = os.open("f", os.O_WRONLY); os.write(fd, b"y"); os.close(fd)
        os._exit(0)
    except PermissionError: os._exit(13)
_, status = os.waitpid(child, 0)
if os.waitstatus_to_exitcode(status) == 13: not_here("other users are not let in")
equal(os.waitstatus_to_exitcode(status), 0)
equal(oct(os.stat("f").st_mode & 0o7777), oct(0o777))
`,
    );
  },

  "numbers are unique and stay, whatever happens to the name"(dir) {
    sh(dir, "mkdir d e; for i in $(seq 100); do echo $i > f$i; done");
    const all = ["d", "e", ...Array.from({ length: 100 }, (_, i) => `f${i + 1}`)].map((name) => stat(dir, name).ino);
    assert.equal(new Set(all).size, 102);
    const inode = stat(dir, "f1").ino;
    sh(dir, "echo more >> f1; chmod 600 f1; ln f1 g; mv f1 d/h; sync -f d/h; cat d/h > /dev/null");
    assert.deepEqual([stat(dir, "d/h").ino, stat(dir, "g").ino], [inode, inode]);
    assert.equal(stat(dir, "d").dev, stat(dir, "d/h").dev);
  },

  "statfs says something sane"(dir) {
    const { bsize, blocks, bfree, bavail } = statfsSync(dir, { bigint: true });
    assert.ok(bsize >= 512n && bsize <= 1_048_576n, `block size ${bsize}`);
    assert.ok(blocks > 0n && bfree > 0n && bavail > 0n && bavail <= bfree && bfree <= blocks);
    assert.equal(sh(dir, "stat -f -c %l ."), "255\n");
    sh(dir, "df . && df -i .");
  },

  "access asks for the modes"(dir) {
    writeFileSync(join(dir, "f"), "");
    sh(dir, "chmod 644 f");
    accessSync(join(dir, "f"), constants.R_OK | constants.W_OK);
    fails("EACCES", () => accessSync(join(dir, "f"), constants.X_OK));
    sh(dir, "chmod 755 f");
    accessSync(join(dir, "f"), constants.X_OK);
    fails("ENOENT", () => accessSync(join(dir, "none")));
    assert.equal(existsSync(join(dir, "none")), false);
  },

  "a program is run"(dir) {
    writeFileSync(join(dir, "script"), "#!/bin/sh\necho ran\n", { mode: 0o755 });
    assert.equal(sh(dir, "./script"), "ran\n");
    assert.equal(sh(dir, "cp /bin/echo . && ./echo copied"), "copied\n");
    sh(dir, "chmod 600 script; if ./script 2> /dev/null; then exit 1; fi");
  },

  "user attributes are set, read, listed, replaced, removed"(dir) {
    python(
      dir,
      `
put("f"); os.mkdir("d")
for name in ("f", "d"):
    equal(os.listxattr(name), [])
    os.setxattr(name, "user.one", b"1"); os.setxattr(name, "user.two", bytes(range(256))); os.setxattr(name, "user.empty", b"")
    equal(sorted(os.listxattr(name)), ["user.empty", "user.one", "user.two"])
    equal((os.getxattr(name, "user.one"), os.getxattr(name, "user.two"), os.getxattr(name, "user.empty")), (b"1", bytes(range(256)), b""))
    equal(code(os.setxattr, name, "user.one", b"x", os.XATTR_CREATE), "EEXIST")
    equal(code(os.setxattr, name, "user.none", b"x", os.XATTR_REPLACE), "ENODATA")
    os.setxattr(name, "user.one", b"replaced", os.XATTR_REPLACE); os.setxattr(name, "user.three", b"3", os.XATTR_CREATE)
    equal((os.getxattr(name, "user.one"), os.getxattr(name, "user.three")), (b"replaced", b"3"))
    os.removexattr(name, "user.one")
    equal((code(os.getxattr, name, "user.one"), code(os.removexattr, name, "user.one")), ("ENODATA", "ENODATA"))
    equal(sorted(os.listxattr(name)), ["user.empty", "user.three", "user.two"])
`,
    );
  },

  "user attributes stay through rename, link, writing, and go with the file"(dir) {
    python(
      dir,
      `
put("a"); os.setxattr("a", "user.tag", b"kept")
os.rename("a", "b"); os.link("b", "c"); put("b", "content")
equal((os.getxattr("b", "user.tag"), os.getxattr("c", "user.tag")), (b"kept", b"kept"))
os.unlink("b"); os.unlink("c"); put("b")
equal(os.listxattr("b"), [])
`,
    );
    sh(
      dir,
      'touch f; setfattr -n user.note -v text f; cp -a f g; test "$(getfattr --only-values -n user.note g)" = text',
    );
  },

  "a buffer too small for an attribute is told so"(dir) {
    python(
      dir,
      `
put("f"); os.setxattr("f", "user.a", b"x" * 100)
buffer = ctypes.create_string_buffer(10)
equal(libc.getxattr(b"f", b"user.a", None, 0), 100)
equal((libc.getxattr(b"f", b"user.a", buffer, 10), ctypes.get_errno()), (-1, errno.ERANGE))
equal(libc.listxattr(b"f", None, 0), 7)
equal((libc.listxattr(b"f", buffer, 3), ctypes.get_errno()), (-1, errno.ERANGE))
`,
    );
  },

  "attributes of no known namespace are refused, and user ones on links"(dir) {
    python(
      dir,
      `
put("f"); os.symlink("f", "l")
equal(code(os.setxattr, "f", "other.a", b"x"), "ENOTSUP")
equal(code(os.getxattr, "f", "other.a"), "ENOTSUP")
equal([code(os.setxattr, "f", "user.", b"x"), code(os.getxattr, "f", "user."), code(os.removexattr, "f", "user.")], ["EINVAL"] * 3)
equal(code(os.setxattr, "l", "user.a", b"x", follow_symlinks=False), "EPERM")
equal(code(os.setxattr, "f", "user." + "n" * 251, b"x"), "ERANGE")
`,
    );
  },
};
