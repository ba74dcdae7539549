/** Symbolic and hard links, and files that are no files. */
import assert from "node:assert/strict";
import {
  linkSync,
  lstatSync,
  mkdirSync,
  readlinkSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { type Cases, fails, names, python, sh, stat, text } from "./case.ts";

export const linkCases: Cases = {
  "a symlink keeps its target, whatever it says"(dir) {
    const targets = ["nowhere", "/", "../..", "./a//b/", " ", "ümlaut/水", "x".repeat(1000), "long/".repeat(800)];
    for (const [i, target] of targets.entries()) {
      const path = join(dir, `l${i}`);
      symlinkSync(target, path);
      assert.equal(readlinkSync(path), target);
      assert.equal(stat(path).size, BigInt(Buffer.byteLength(target)));
      assert.equal(lstatSync(path).isSymbolicLink(), true);
    }
  },

  "a symlink is followed to files and folders, and is nothing when it leads nowhere"(dir) {
    sh(dir, "mkdir d; echo 1 > d/f; ln -s d/f file; ln -s d folder; ln -s none none2");
    assert.equal(text(dir, "file"), "1\n");
    assert.equal(text(dir, "folder/f"), "1\n");
    assert.deepEqual(names(dir, "folder"), ["f"]);
    assert.equal(statSync(join(dir, "file")).ino, statSync(join(dir, "d/f")).ino);
    fails("ENOENT", () => statSync(join(dir, "none2")));
    writeFileSync(join(dir, "none2"), "made through the link");
    assert.equal(text(dir, "none"), "made through the link");
  },

  "links in a ring are too many"(dir) {
    symlinkSync("b", join(dir, "a"));
    symlinkSync("a", join(dir, "b"));
    fails("ELOOP", () => statSync(join(dir, "a")));
    fails("ELOOP", () => text(dir, "b/c"));
    python(dir, `equal(code(os.open, "a", os.O_RDONLY | os.O_NOFOLLOW), "ELOOP")`);
  },

  "readlink is for links only, and a link's name can be taken away and given"(dir) {
    writeFileSync(join(dir, "f"), "");
    fails("EINVAL", () => readlinkSync(join(dir, "f")));
    fails("EINVAL", () => readlinkSync(dir));
    symlinkSync("f", join(dir, "l"));
    fails("EEXIST", () => symlinkSync("g", join(dir, "l")));
    sh(dir, "ln -sfn other l");
    assert.equal(readlinkSync(join(dir, "l")), "other");
  },

  "a symlink has a time of its own"(dir) {
    python(
      dir,
      `
put("f"); os.symlink("f", "l")
os.utime("f", ns=(1, 2)); os.utime("l", ns=(3, 1234567890123456789), follow_symlinks=False)
equal(os.lstat("l").st_mtime_ns, 1234567890123456789)
equal(os.stat("l").st_mtime_ns, 2)
`,
    );
  },

  "a hard link is the same file: content, attributes, number, count"(dir) {
    const at = (name: string) => join(dir, name);
    mkdirSync(at("d"));
    writeFileSync(at("a"), "one");
    linkSync(at("a"), at("b"));
    linkSync(at("b"), at("d/c"));
    writeFileSync(at("d/c"), "two, longer");
    sh(dir, "chmod 640 b && touch -d '2001-02-03 04:05:06.789' b");
    const all = ["a", "b", "d/c"].map((name) => stat(at(name)));
    for (const one of all) {
      assert.deepEqual(
        [one.ino, one.nlink, one.size, one.mode & 0o777n, one.mtimeNs],
        [all[0]?.ino, 3n, 11n, 0o640n, all[0]?.mtimeNs],
      );
    }
    assert.equal(text(at("a")), "two, longer");
    unlinkSync(at("a"));
    assert.equal(stat(at("b")).nlink, 2n);
    assert.equal(text(at("d/c")), "two, longer");
    unlinkSync(at("b"));
    assert.equal(stat(at("d/c")).nlink, 1n);
  },

  "a hard link is refused to folders, over a taken name, to nothing"(dir) {
    sh(dir, "mkdir d; touch f g");
    fails("EPERM", () => linkSync(join(dir, "d"), join(dir, "e")));
    fails("EEXIST", () => linkSync(join(dir, "f"), join(dir, "g")));
    fails("ENOENT", () => linkSync(join(dir, "none"), join(dir, "h")));
    fails("ENOENT", () => linkSync(join(dir, "f"), join(dir, "none/h")));
    assert.deepEqual(names(dir), ["d", "f", "g"]);
  },

  "an open file sees what comes by its other name"(dir) {
    python(
      dir,
      `
put("a", "1"); os.link("a", "b")
fd = os.open("a", os.O_RDWR)
put("b", "23")
equal(os.pread(fd, 10, 0), b"23")
os.unlink("a")
os.pwrite(fd, b"4", 2)
equal(get("b"), b"234")
equal(os.fstat(fd).st_nlink, 1)
`,
    );
  },

  "a hard link to a symlink, and to a named pipe"(dir) {
    python(
      dir,
      `
os.symlink("nowhere", "l"); os.link("l", "m", follow_symlinks=False)
equal((os.readlink("m"), os.lstat("m").st_ino, os.lstat("l").st_nlink), ("nowhere", os.lstat("l").st_ino, 2))
os.mkfifo("p"); os.link("p", "q")
equal((stat.S_ISFIFO(os.stat("q").st_mode), os.stat("p").st_nlink), (True, 2))
`,
    );
  },

  "a named pipe carries bytes between programs"(dir) {
    sh(dir, 'mkfifo -m 600 p; test -p p; cat p > out & echo through > p; wait; test "$(cat out)" = through');
    assert.equal(stat(dir, "p").mode, 0o010600n);
    assert.deepEqual(names(dir), ["out", "p"]);
  },

  "a socket has a name"(dir) {
    python(
      dir,
      `
import socket
server = socket.socket(socket.AF_UNIX); server.bind("s"); server.listen()
equal(stat.S_ISSOCK(os.stat("s").st_mode), True)
client = socket.socket(socket.AF_UNIX); client.connect("s")
client.sendall(b"hello")
equal(server.accept()[0].recv(5), b"hello")
os.unlink("s")
equal(os.listdir("."), [])
`,
    );
  },

  "mknod makes files and pipes, and for root devices with their numbers"(dir) {
    python(
      dir,
      `
os.mknod("f", 0o640 | stat.S_IFREG); os.mknod("p", 0o600 | stat.S_IFIFO)
equal((stat.S_ISREG(os.stat("f").st_mode), stat.S_ISFIFO(os.stat("p").st_mode)), (True, True))
equal(code(os.mknod, "f", 0o600 | stat.S_IFREG), "EEXIST")
put("f", "usable"); equal(get("f"), b"usable")
if os.getuid() == 0:
    os.mknod("c", 0o600 | stat.S_IFCHR, os.makedev(1, 3)); os.mknod("b", 0o600 | stat.S_IFBLK, os.makedev(7, 300))
    equal((stat.S_ISCHR(os.stat("c").st_mode), os.stat("c").st_rdev), (True, os.makedev(1, 3)))
    equal((stat.S_ISBLK(os.stat("b").st_mode), os.stat("b").st_rdev), (True, os.makedev(7, 300)))
`,
    );
  },
};
