/** rename(2) in all its combinations. */
import assert from "node:assert/strict";
import {
  closeSync,
  fstatSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { type Cases, exists, fails, names, python, sh, stat, text } from "./case.ts";

function inFolder(dir: string): (name: string) => string {
  return (name) => join(dir, name);
}

export const renameCases: Cases = {
  "a file gets a new name and stays the same file"(dir) {
    const at = inFolder(dir);
    writeFileSync(at("a"), "content");
    const before = stat(at("a"));
    renameSync(at("a"), at("b"));
    assert.deepEqual(names(dir), ["b"]);
    assert.equal(text(at("b")), "content");
    const after = stat(at("b"));
    assert.deepEqual([after.ino, after.mtimeNs, after.mode], [before.ino, before.mtimeNs, before.mode]);
    fails("ENOENT", () => text(at("a")));
  },

  "a file moves to another folder and back"(dir) {
    const at = inFolder(dir);
    mkdirSync(at("x/y/z"), { recursive: true });
    writeFileSync(at("f"), "1");
    renameSync(at("f"), at("x/y/z/g"));
    assert.deepEqual([names(dir), names(at("x/y/z"))], [["x"], ["g"]]);
    renameSync(at("x/y/z/g"), at("f"));
    assert.deepEqual([names(dir), names(at("x/y/z"))], [["f", "x"], []]);
    assert.equal(text(at("f")), "1");
  },

  "a folder moves with all in it"(dir) {
    const at = inFolder(dir);
    sh(dir, "mkdir -p a/b/c other; echo 1 > a/b/c/one; echo 2 > a/two; ln -s two a/link");
    const before = stat(at("a/b/c/one")).ino;
    renameSync(at("a"), at("other/moved"));
    assert.equal(
      sh(dir, "cd other && find moved | sort"),
      "moved\nmoved/b\nmoved/b/c\nmoved/b/c/one\nmoved/link\nmoved/two\n",
    );
    assert.equal(stat(at("other/moved/b/c/one")).ino, before);
    assert.equal(text(at("other/moved/link")), "2\n");
    assert.equal(stat(at("other/moved"), "..").ino, stat(at("other")).ino);
  },

  "over a file: the new content is there, the old one stays for who has it open"(dir) {
    const at = inFolder(dir);
    writeFileSync(at("old"), "old content");
    writeFileSync(at("new"), "new");
    const fd = openSync(at("old"), "r+");
    const inode = stat(at("new")).ino;
    renameSync(at("new"), at("old"));
    assert.deepEqual(names(dir), ["old"]);
    assert.equal(text(at("old")), "new");
    assert.equal(stat(at("old")).ino, inode);
    assert.equal(readFileSync(fd, "utf8"), "old content");
    writeSync(fd, "OLD", 0);
    assert.equal(fstatSync(fd).nlink, 0);
    assert.equal(fstatSync(fd).size, 11);
    closeSync(fd);
    assert.equal(text(at("old")), "new");
  },

  "an open file is written on under its new name"(dir) {
    const at = inFolder(dir);
    const fd = openSync(at("a"), "w");
    writeSync(fd, "one");
    renameSync(at("a"), at("b"));
    writeSync(fd, " two");
    assert.equal(text(at("b")), "one two");
    writeFileSync(at("a"), "another");
    writeSync(fd, " three");
    closeSync(fd);
    assert.deepEqual([text(at("a")), text(at("b"))], ["another", "one two three"]);
  },

  "over an empty folder, not over one with something in it"(dir) {
    const at = inFolder(dir);
    sh(dir, "mkdir a empty full; touch a/in full/in");
    fails("ENOTEMPTY", () => renameSync(at("a"), at("full")));
    renameSync(at("a"), at("empty"));
    assert.deepEqual(names(dir), ["empty", "full"]);
    assert.deepEqual(names(at("empty")), ["in"]);
  },

  "kinds do not replace each other, except files and links"(dir) {
    const at = inFolder(dir);
    sh(dir, "mkdir folder; echo 1 > file; ln -s nowhere link");
    fails("EISDIR", () => renameSync(at("file"), at("folder")));
    fails("ENOTDIR", () => renameSync(at("folder"), at("file")));
    fails("ENOTDIR", () => renameSync(at("folder"), at("link")));
    renameSync(at("file"), at("link"));
    assert.equal(text(at("link")), "1\n");
    symlinkSync("link", at("again"));
    renameSync(at("again"), at("link"));
    assert.deepEqual(names(dir), ["folder", "link"]);
    assert.equal(sh(dir, "readlink link"), "link\n");
  },

  "a folder does not move into itself"(dir) {
    const at = inFolder(dir);
    mkdirSync(at("a/b"), { recursive: true });
    fails("EINVAL", () => renameSync(at("a"), at("a/c")));
    fails("EINVAL", () => renameSync(at("a"), at("a/b/c")));
    fails("ENOTEMPTY", () => renameSync(at("a/b"), at("a")));
    assert.deepEqual(names(at("a")), ["b"]);
  },

  "over itself, and over another name of the same file: nothing happens"(dir) {
    const at = inFolder(dir);
    writeFileSync(at("a"), "1");
    linkSync(at("a"), at("b"));
    renameSync(at("a"), at("a"));
    renameSync(at("a"), at("b"));
    assert.deepEqual(names(dir), ["a", "b"]);
    assert.equal(stat(at("a")).nlink, 2n);
  },

  "what is missing is missing"(dir) {
    const at = inFolder(dir);
    writeFileSync(at("f"), "");
    fails("ENOENT", () => renameSync(at("none"), at("g")));
    fails("ENOENT", () => renameSync(at("f"), at("none/g")));
    fails("ENOTDIR", () => renameSync(at("f"), at("f/g")));
    fails("ENAMETOOLONG", () => renameSync(at("f"), at("n".repeat(256))));
    assert.deepEqual(names(dir), ["f"]);
  },

  "NOREPLACE refuses a taken name, takes a free one"(dir) {
    python(
      dir,
      `
put("a", "a"); put("b", "b"); os.mkdir("d")
equal(code(renameat2, "a", "b", NOREPLACE), "EEXIST")
equal(code(renameat2, "a", "d", NOREPLACE), "EEXIST")
equal(code(renameat2, "d", "a", NOREPLACE), "EEXIST")
equal(code(renameat2, "a", "a", NOREPLACE), "EEXIST")
renameat2("a", "c", NOREPLACE)
equal(sorted(os.listdir()), ["b", "c", "d"])
equal((get("b"), get("c")), (b"b", b"a"))
`,
    );
  },

  "EXCHANGE changes two names, of whatever kind"(dir) {
    python(
      dir,
      `
put("a", "a"); put("b", "b"); os.makedirs("d/e"); put("d/f", "f")
ino = {n: os.stat(n).st_ino for n in ("a", "b", "d")}
renameat2("a", "b", EXCHANGE)
equal((get("a"), get("b"), os.stat("a").st_ino, os.stat("b").st_ino), (b"b", b"a", ino["b"], ino["a"]))
renameat2("a", "d", EXCHANGE)
equal((get("d"), sorted(os.listdir("a")), os.stat("a").st_ino), (b"b", ["e", "f"], ino["d"]))
renameat2("b", "a/f", EXCHANGE)
equal((get("b"), get("a/f")), (b"f", b"a"))
equal(code(renameat2, "a", "none", EXCHANGE), "ENOENT")
equal(code(renameat2, "none", "a", EXCHANGE), "ENOENT")
equal(code(renameat2, "a", "a/e", EXCHANGE), "EINVAL")
equal(code(renameat2, "a/e", "a", EXCHANGE), "EINVAL")
equal(sorted(os.listdir()), ["a", "b", "d"])
`,
    );
  },

  "two names change places by a third"(dir) {
    const at = inFolder(dir);
    for (const name of ["a", "b"]) writeFileSync(at(name), name);
    for (let round = 0; round < 11; round++) {
      renameSync(at("a"), at("t"));
      renameSync(at("b"), at("a"));
      renameSync(at("t"), at("b"));
    }
    assert.equal(text(at("a")) + text(at("b")), "ba");
    assert.deepEqual(names(dir), ["a", "b"]);
  },

  "a folder takes its parent's place"(dir) {
    sh(dir, "mkdir -p a/b/c; echo 1 > a/b/c/f; mv a/b t; rmdir a; mv t a; mv a/c/f a/f; rmdir a/c");
    assert.equal(text(dir, "a/f"), "1\n");
    assert.equal(sh(dir, "find . | sort"), ".\n./a\n./a/f\n");
  },

  "only the case of a name changes"(dir) {
    const at = inFolder(dir);
    writeFileSync(at("Name"), "1");
    renameSync(at("Name"), at("name"));
    assert.deepEqual(names(dir), ["name"]);
    assert.equal(exists(at("Name")), false);
  },
};
