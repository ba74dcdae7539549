/** Names: made, found, listed, refused. */
import assert from "node:assert/strict";
import { closeSync, mkdirSync, openSync, rmdirSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Cases, codeOf, exists, fails, names, sh, text } from "./case.ts";

const create = (path: string) => closeSync(openSync(path, "wx"));

export const nameCases: Cases = {
  "a created file is found and listed"(dir) {
    writeFileSync(join(dir, "a"), "one");
    assert.deepEqual(names(dir), ["a"]);
    assert.equal(text(dir, "a"), "one");
  },

  "O_EXCL refuses a name that is taken, by whatever"(dir) {
    create(join(dir, "file"));
    mkdirSync(join(dir, "folder"));
    symlinkSync("nowhere", join(dir, "link"));
    for (const name of ["file", "folder", "link"]) fails("EEXIST", () => create(join(dir, name)));
    assert.equal(exists(dir, "nowhere"), false);
  },

  "mkdir -p builds a chain and accepts one"(dir) {
    sh(dir, "mkdir -p a/b/c/d/e/f/g/h/i/j && mkdir -p a/b/c && echo deep > a/b/c/d/e/f/g/h/i/j/file");
    assert.equal(text(dir, "a/b/c/d/e/f/g/h/i/j/file"), "deep\n");
    fails("EEXIST", () => mkdirSync(join(dir, "a")));
  },

  "a name may have 255 bytes, not 256"(dir) {
    for (const name of ["n".repeat(255), `${"ä".repeat(127)}x`, `${"水".repeat(85)}`]) {
      writeFileSync(join(dir, name), name);
      assert.equal(text(dir, name), name);
      for (const act of [create, (path: string) => mkdirSync(path), (path: string) => symlinkSync("a", path)]) {
        fails("ENAMETOOLONG", () => act(join(dir, `${name}y`)));
      }
      assert.deepEqual(names(dir), [name]);
      unlinkSync(join(dir, name));
    }
  },

  "Unicode stays as it was written: composed, decomposed, emoji, right to left"(dir) {
    const all = [
      "\u00e9",
      "e\u0301",
      "\u{1F469}\u200d\u{1F680}",
      "\u05e9\u05dc\u05d5\u05dd",
      "\uFEFFbom",
      "\u00a0",
    ].sort();
    for (const name of all) writeFileSync(join(dir, name), name);
    assert.deepEqual(names(dir), all);
    for (const name of all) assert.equal(text(dir, name), name);
  },

  "dots, spaces, and what shells, URLs and other systems find special"(dir) {
    const all = [
      ...[" ", "  lead", "trail ", "...", ".hidden", "dot.", "-rf", "~", "*?[x]", "a\nb", "tab\t", "\x01", "\x7f"],
      ...[
        "'",
        '"',
        "`$(x)`",
        "\\",
        "a\\b",
        "CON",
        "a:b",
        "a|b<c>",
        "%",
        "%2F",
        "%2e%2e",
        "a#b",
        "a?b=c&d",
        "a+b",
        ";",
        "{}",
      ],
    ].sort();
    for (const name of all) writeFileSync(join(dir, name), name);
    assert.deepEqual(names(dir), all);
    for (const name of all) assert.equal(text(dir, name), name);
  },

  "names differ by case"(dir) {
    for (const name of ["a", "A"]) writeFileSync(join(dir, name), name);
    assert.equal(text(dir, "a") + text(dir, "A"), "aA");
  },

  "a path may have nearly 4096 bytes"(dir) {
    let path = dir;
    while (path.length < 3800) path = join(path, "f".repeat(200));
    mkdirSync(path, { recursive: true });
    writeFileSync(join(path, "end"), "far");
    assert.equal(text(path, "end"), "far");
  },

  "a name can be taken again, by another kind, at once"(dir) {
    const path = join(dir, "n");
    for (let round = 0; round < 20; round++) {
      writeFileSync(path, String(round));
      assert.equal(text(path), String(round));
      unlinkSync(path);
      mkdirSync(path);
      assert.deepEqual(names(path), []);
      rmdirSync(path);
      symlinkSync("t", path);
      unlinkSync(path);
      assert.equal(
        codeOf(() => text(path)),
        "ENOENT",
      );
    }
    assert.deepEqual(names(dir), []);
  },
};
