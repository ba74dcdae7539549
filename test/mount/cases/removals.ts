/** Removing: of open files, of folders, of the folder one stands in. */
import assert from "node:assert/strict";
import {
  closeSync,
  fstatSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmdirSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { type Cases, fails, names, pattern, python, sh, text } from "./case.ts";

export const removalCases: Cases = {
  "a removed file is gone, and its name is free"(dir) {
    const path = join(dir, "f");
    writeFileSync(path, "1");
    unlinkSync(path);
    fails("ENOENT", () => text(path));
    fails("ENOENT", () => unlinkSync(path));
    assert.deepEqual(names(dir), []);
  },

  "an open file is read and written on after its removal"(dir) {
    const path = join(dir, "f");
    writeFileSync(path, pattern(200_000));
    const fd = openSync(path, "r+");
    unlinkSync(path);
    assert.deepEqual(names(dir), []);
    assert.equal(fstatSync(fd).nlink, 0);
    assert.deepEqual(readFileSync(fd), pattern(200_000));
    writeSync(fd, "more", 200_000);
    ftruncateSync(fd, 200_003);
    assert.equal(fstatSync(fd).size, 200_003);
    writeFileSync(path, "another file");
    writeSync(fd, "X", 0);
    closeSync(fd);
    assert.equal(text(path), "another file");
  },

  "a file is made, removed, and only then written"(dir) {
    python(
      dir,
      `
fd = os.open("t", os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
os.unlink("t")
equal(os.listdir(), [])
os.write(fd, b"temporary" * 1000)
equal(os.pread(fd, 9, 9 * 999), b"temporary")
equal(os.fstat(fd).st_nlink, 0)
os.fchmod(fd, 0o640); os.utime(fd, ns=(5, 7)); os.fsync(fd)
equal((stat.S_IMODE(os.fstat(fd).st_mode), os.fstat(fd).st_mtime_ns), (0o640, 7))
os.close(fd)
equal(os.listdir(), [])
`,
    );
  },

  "a folder with something in it stays"(dir) {
    sh(dir, "mkdir -p d/e; touch d/f");
    fails("ENOTEMPTY", () => rmdirSync(join(dir, "d")));
    unlinkSync(join(dir, "d/f"));
    fails("ENOTEMPTY", () => rmdirSync(join(dir, "d")));
    rmdirSync(join(dir, "d/e"));
    rmdirSync(join(dir, "d"));
    assert.deepEqual(names(dir), []);
  },

  "unlink is for files, rmdir for folders"(dir) {
    sh(dir, "mkdir d; touch f; ln -s d l");
    fails("EISDIR", () => unlinkSync(join(dir, "d")));
    fails("ENOTDIR", () => rmdirSync(join(dir, "f")));
    fails("ENOTDIR", () => rmdirSync(join(dir, "l")));
    unlinkSync(join(dir, "l"));
    assert.deepEqual(names(dir), ["d", "f"]);
  },

  "rm -rf takes a deep tree away"(dir) {
    sh(
      dir,
      'for i in 1 2 3 4 5; do mkdir -p "a/$i/x/y/z"; for j in 1 2 3; do echo $j > "a/$i/x/y/$j"; done; done; rm -rf a',
    );
    assert.deepEqual(names(dir), []);
  },

  "a folder one stands in is removed: it is empty and takes nothing new"(dir) {
    python(
      dir,
      `
os.mkdir("d"); os.chdir("d"); os.rmdir("../d")
equal(os.listdir("."), [])
equal(code(os.open, "f", os.O_CREAT | os.O_WRONLY), "ENOENT")
equal(code(os.mkdir, "e"), "ENOENT")
equal(code(os.symlink, "a", "b"), "ENOENT")
equal(code(os.rename, "../d", "../e"), "ENOENT")
equal((stat.S_ISDIR(os.stat(".").st_mode), os.stat(".").st_nlink), (True, 0))
os.chdir("..")
equal(os.listdir("."), [])
`,
    );
  },

  "a folder one stands in moves along"(dir) {
    python(
      dir,
      `
os.makedirs("a/d"); os.mkdir("b"); os.chdir("a/d"); put("before", "1")
os.rename("../d", "../../b/moved")
put("after", "2")
equal(sorted(os.listdir(".")), ["after", "before"])
equal(os.path.basename(os.getcwd()), "moved")
equal(sorted(os.listdir("..")), ["moved"])
`,
    );
  },

  "a folder's handle outlives its removal"(dir) {
    mkdirSync(join(dir, "d"));
    python(
      dir,
      `
fd = os.open("d", os.O_RDONLY | os.O_DIRECTORY)
os.rmdir("d"); os.mkdir("d"); put("d/new")
equal(os.listdir(fd), [])
equal(os.listdir("d"), ["new"])
equal(code(os.open, "x", os.O_CREAT | os.O_WRONLY, dir_fd=fd), "ENOENT")
`,
    );
  },
};
