/**
 * The conflicts: what two mounts do at the same time, and what is there in the end. The one list makes both the tests
 * (conflicts.test.ts) and the table (docs/user/conflict-table.md).
 */
import { LINKED, OPEN } from "./conflict-files.ts";
import type { Conflict, Hands } from "./conflict-run.ts";

const a = (at: Hands) => at.save("a", "base");
const d = async (at: Hands) => {
  await at.calls.mkdir("d");
  await at.save("d/a", "base");
};
const de = async (at: Hands) => {
  await at.calls.mkdir("d");
  await at.calls.mkdir("e");
};

const ab = async (at: Hands) => {
  await at.save("a", "a's");
  await at.save("b", "b's");
};

/** Two names that take each other's place. */
const EXCHANGED: readonly Conflict[] = [
  {
    one: "exchanges `a` and `b`",
    other: "exchanges `a` and `b`",
    why: "both want the same",
    before: ab,
    left: (at) => at.calls.exchange("a", "b"),
    right: (at) => at.calls.exchange("a", "b"),
    ends: { a: "b's", b: "a's" },
    same: { a: "b", b: "a" },
  },
  {
    one: "exchanges `a` and `b`",
    other: "saves `a`",
    why: "a save follows its file",
    before: ab,
    left: (at) => at.calls.exchange("a", "b"),
    right: (at) => at.save("a", "the other's"),
    ends: { a: "b's", b: "the other's" },
    same: { a: "b", b: "a" },
  },
  {
    one: "exchanges `a` and `b`",
    other: "removes `a`",
    why: "a deletion wins against a move, and the other file goes to its new place",
    before: ab,
    left: (at) => at.calls.exchange("a", "b"),
    right: (at) => at.calls.unlink("a"),
    ends: { a: "b's" },
    same: { a: "b" },
  },
  {
    one: "exchanges `a` and `b`",
    other: "renames `a` to `c`",
    why: "the place the gateway has first wins, for each of the two",
    before: ab,
    left: (at) => at.calls.exchange("a", "b"),
    right: (at) => at.calls.rename("a", "c"),
    ends: { a: "b's", b: "a's" },
    otherFirst: { a: "b's", c: "a's" },
    same: { a: "b" },
  },
];

export const CONFLICTS: readonly Conflict[] = [
  // --- content
  {
    one: "saves `a`",
    other: "saves `a`",
    why: "the second one's content is kept beside the first",
    before: a,
    left: (at) => at.save("a", "one's"),
    right: (at) => at.save("a", "the other's"),
    ends: { a: "one's", "a (conflict)": "the other's" },
    otherFirst: { a: "the other's", "a (conflict)": "one's" },
    same: { a: "a" },
  },
  {
    one: "saves `a`",
    other: "saves `a` with the same bytes",
    why: "the same bytes are no conflict",
    before: a,
    left: (at) => at.save("a", "the same"),
    right: (at) => at.save("a", "the same"),
    ends: { a: "the same" },
    same: { a: "a" },
  },
  {
    one: "saves `a`",
    other: "saves `a` by renaming a new file over it",
    why: "however a save is done, it is a save",
    before: a,
    left: (at) => at.save("a", "one's"),
    right: (at) => at.replace("a", "the other's"),
    ends: { a: "one's", "a (conflict)": "the other's" },
    otherFirst: { a: "the other's", "a (conflict)": "one's" },
    same: { a: "a" },
  },
  {
    one: "saves `a`",
    other: "changes the mode of `a`",
    why: "content and attributes are apart",
    before: a,
    left: (at) => at.save("a", "one's"),
    right: (at) => at.calls.chmod("a", 0o600),
    ends: { a: "one's, mode 600" },
    same: { a: "a" },
  },
  {
    one: "changes the mode of `a`",
    other: "sets an extended attribute of `a`",
    why: "attributes merge by name",
    before: a,
    left: (at) => at.calls.chmod("a", 0o600),
    right: (at) => at.calls.setxattr("a", "user.tag", "the other's"),
    ends: { a: "base, mode 600, tag the other's" },
    same: { a: "a" },
  },
  {
    one: "changes the mode of `a`",
    other: "changes the mode of `a`",
    why: "of one attribute the later change wins",
    before: a,
    left: (at) => at.calls.chmod("a", 0o600),
    right: (at) => at.calls.chmod("a", 0o640),
    ends: { a: "base, mode 640" },
    otherFirst: { a: "base, mode 600" },
    same: { a: "a" },
  },
  // --- deletion
  {
    one: "saves `a`",
    other: "removes `a`",
    why: "an edit wins against a deletion; deleted first, it is a new node",
    before: a,
    left: (at) => at.save("a", "one's"),
    right: (at) => at.calls.unlink("a"),
    ends: { a: "one's" },
  },
  {
    one: "renames `a` to `b`",
    other: "removes `a`",
    why: "a deletion wins against a move",
    before: a,
    left: (at) => at.calls.rename("a", "b"),
    right: (at) => at.calls.unlink("a"),
    ends: {},
  },
  {
    one: "changes the mode of `a`",
    other: "removes `a`",
    why: "a deletion wins against attributes",
    before: a,
    left: (at) => at.calls.chmod("a", 0o600),
    right: (at) => at.calls.unlink("a"),
    ends: {},
  },
  {
    one: "removes `a`",
    other: "removes `a`",
    why: "both want the same",
    before: a,
    left: (at) => at.calls.unlink("a"),
    right: (at) => at.calls.unlink("a"),
    ends: {},
  },
  {
    one: "saves `d/a`",
    other: "removes `d` with all in it",
    why: "the edit wins, and its folder with it",
    before: d,
    left: (at) => at.save("d/a", "one's"),
    right: async (at) => {
      await at.calls.unlink("d/a");
      await at.calls.rmdir("d");
    },
    ends: { d: "folder", "d/a": "one's" },
  },
  {
    one: "makes `d/b`",
    other: "removes `d` with all in it",
    why: "a new file keeps its folder",
    before: d,
    left: (at) => at.save("d/b", "one's"),
    right: async (at) => {
      await at.calls.unlink("d/a");
      await at.calls.rmdir("d");
    },
    ends: { d: "folder", "d/b": "one's" },
  },
  {
    one: "moves `a` into `d`",
    other: "removes the empty `d`",
    why: "a file that moves in keeps its folder",
    before: async (at) => {
      await a(at);
      await at.calls.mkdir("d");
    },
    left: (at) => at.calls.rename("a", "d/a"),
    right: (at) => at.calls.rmdir("d"),
    ends: { d: "folder", "d/a": "base" },
    same: { "d/a": "a" },
  },
  // --- names
  {
    one: "renames `a` to `b`",
    other: "renames `a` to `c`",
    why: "the place the gateway has first wins",
    before: a,
    left: (at) => at.calls.rename("a", "b"),
    right: (at) => at.calls.rename("a", "c"),
    ends: { b: "base" },
    otherFirst: { c: "base" },
  },
  {
    one: "saves `a`",
    other: "renames `a` to `b`",
    why: "a save follows its file",
    before: a,
    left: (at) => at.save("a", "one's"),
    right: (at) => at.calls.rename("a", "b"),
    ends: { b: "one's" },
    same: { b: "a" },
  },
  {
    one: "makes `a`",
    other: "makes `a`",
    why: "the second one's content is kept beside the first",
    left: (at) => at.save("a", "one's"),
    right: (at) => at.save("a", "the other's"),
    ends: { a: "one's", "a (conflict)": "the other's" },
    otherFirst: { a: "the other's", "a (conflict)": "one's" },
  },
  {
    one: "makes `a`",
    other: "makes `a` with the same bytes",
    why: "the same thing made twice is one node",
    left: (at) => at.save("a", "the same"),
    right: (at) => at.save("a", "the same"),
    ends: { a: "the same" },
  },
  {
    one: "makes the folder `d` and `d/a`",
    other: "makes the folder `d` and `d/b`",
    why: "folders of one name become one",
    left: d,
    right: async (at) => {
      await at.calls.mkdir("d");
      await at.save("d/b", "the other's");
    },
    ends: { d: "folder", "d/a": "base", "d/b": "the other's" },
  },
  {
    one: "makes the file `a`",
    other: "makes the folder `a`",
    why: "the second one is moved aside",
    left: (at) => at.save("a", "one's"),
    right: async (at) => {
      await at.calls.mkdir("a");
      await at.save("a/b", "the other's");
    },
    ends: { a: "one's", "a (conflict)": "folder", "a (conflict)/b": "the other's" },
    otherFirst: { a: "folder", "a/b": "the other's", "a (conflict)": "one's" },
  },
  {
    one: "saves `a`",
    other: "puts a folder in the place of `a`",
    why: "the edit wins its name back, or goes aside",
    before: a,
    left: (at) => at.save("a", "one's"),
    right: async (at) => {
      await at.calls.unlink("a");
      await at.calls.mkdir("a");
    },
    ends: { a: "one's", "a (conflict)": "folder" },
    otherFirst: { a: "folder", "a (conflict)": "one's" },
  },
  {
    one: "makes `d/b`",
    other: "puts a file in the place of `d`",
    why: "a new file keeps its folder, beside the file that has the name",
    before: (at) => at.calls.mkdir("d"),
    left: (at) => at.save("d/b", "one's"),
    right: async (at) => {
      await at.calls.rmdir("d");
      await at.save("d", "the other's");
    },
    ends: { d: "folder", "d/b": "one's", "d (conflict)": "the other's" },
    otherFirst: { d: "the other's", "d (conflict)": "folder", "d (conflict)/b": "one's" },
  },
  {
    one: "renames `a` to `c`",
    other: "renames `b` to `c`",
    why: "the second to take a name is moved aside",
    before: async (at) => {
      await at.save("a", "a's");
      await at.save("b", "b's");
    },
    left: (at) => at.calls.rename("a", "c"),
    right: (at) => at.calls.rename("b", "c"),
    ends: { c: "a's", "c (conflict)": "b's" },
    otherFirst: { c: "b's", "c (conflict)": "a's" },
  },
  {
    one: "saves `a`",
    other: "removes `a` and moves `b` there",
    why: "another node of the same name is no version of this one: both stay",
    before: async (at) => {
      await a(at);
      await at.calls.mkdir("d");
      await at.save("d/b", "b's");
    },
    left: (at) => at.save("a", "one's"),
    right: async (at) => {
      // By way of a name of its own, so that it is a move and no save.
      await at.calls.unlink("a");
      await at.calls.rename("d/b", "a");
    },
    ends: { a: "one's", d: "folder", "a (conflict)": "b's" },
    otherFirst: { a: "b's", d: "folder", "a (conflict)": "one's" },
  },
  {
    one: "exchanges the folders `d` and `e`, through a third name",
    other: "saves `d/a`",
    why: "the contents of a folder move with it",
    before: async (at) => {
      await de(at);
      await at.save("d/a", "base");
    },
    left: async (at) => {
      await at.calls.rename("d", "t");
      await at.calls.rename("e", "d");
      await at.calls.rename("t", "e");
    },
    right: (at) => at.save("d/a", "the other's"),
    ends: { d: "folder", e: "folder", "e/a": "the other's" },
    same: { d: "e", e: "d", "e/a": "d/a" },
  },
  ...EXCHANGED,
  {
    one: "renames `a` to `b`",
    other: "makes `b`",
    why: "the second to take a name is moved aside",
    before: a,
    left: (at) => at.calls.rename("a", "b"),
    right: (at) => at.save("b", "the other's"),
    ends: { b: "base", "b (conflict)": "the other's" },
    otherFirst: { b: "the other's", "b (conflict)": "base" },
  },
  {
    one: "renames `a` over `b`",
    other: "saves `b`",
    why: "a file renamed over another is a save of that one",
    before: ab,
    left: (at) => at.calls.rename("a", "b"),
    right: (at) => at.save("b", "the other's"),
    ends: { b: "a's", "b (conflict)": "the other's" },
    otherFirst: { b: "the other's", "b (conflict)": "a's" },
    same: { b: "b" },
  },
  {
    one: "renames `a` over `b`",
    other: "saves `a`",
    why: "a file renamed over another is a save of that one, and a removal of its own name: the edit wins against that",
    before: ab,
    left: (at) => at.calls.rename("a", "b"),
    right: (at) => at.save("a", "the other's"),
    ends: { a: "the other's", b: "a's" },
    same: { b: "b" },
  },
  {
    one: "makes the symbolic link `a`",
    other: "makes the symbolic link `a` to something else",
    why: "the second one's content is kept beside the first",
    left: (at) => at.calls.symlink("one", "a"),
    right: (at) => at.calls.symlink("other", "a"),
    ends: { a: "-> one", "a (conflict)": "-> other" },
    otherFirst: { a: "-> other", "a (conflict)": "-> one" },
  },
  // --- folders
  {
    one: "renames `d` to `e`",
    other: "removes `d` with all in it",
    why: "a deletion wins against a move",
    before: d,
    left: (at) => at.calls.rename("d", "e"),
    right: async (at) => {
      await at.calls.unlink("d/a");
      await at.calls.rmdir("d");
    },
    ends: {},
  },
  {
    one: "renames `d` to `e`",
    other: "makes the folder `e` and `e/b`",
    why: "two folders become one where both are new; else the second to take a name is moved aside",
    before: d,
    left: (at) => at.calls.rename("d", "e"),
    right: async (at) => {
      await at.calls.mkdir("e");
      await at.save("e/b", "the other's");
    },
    ends: { e: "folder", "e/a": "base", "e (conflict)": "folder", "e (conflict)/b": "the other's" },
    otherFirst: { e: "folder", "e/b": "the other's", "e (conflict)": "folder", "e (conflict)/a": "base" },
  },
  {
    one: "moves `a` into `d`",
    other: "renames `d` to `e`",
    why: "the contents of a folder move with it",
    before: async (at) => {
      await a(at);
      await at.calls.mkdir("d");
    },
    left: (at) => at.calls.rename("a", "d/a"),
    right: (at) => at.calls.rename("d", "e"),
    ends: { e: "folder", "e/a": "base" },
    same: { e: "d", "e/a": "a" },
  },
  {
    one: "moves `d` into `e`",
    other: "moves `e` into `d`",
    why: "the place the gateway has first wins; the other one stays where it was",
    before: de,
    left: (at) => at.calls.rename("d", "e/d"),
    right: (at) => at.calls.rename("e", "d/e"),
    ends: { e: "folder", "e/d": "folder" },
    otherFirst: { d: "folder", "d/e": "folder" },
    same: {},
  },
  {
    one: "saves `d/a`",
    other: "renames `d` to `e`",
    why: "the contents of a folder move with it",
    before: d,
    left: (at) => at.save("d/a", "one's"),
    right: (at) => at.calls.rename("d", "e"),
    ends: { e: "folder", "e/a": "one's" },
    same: { e: "d", "e/a": "d/a" },
  },
  {
    one: "makes `d/b`",
    other: "renames `d` to `e`",
    why: "the contents of a folder move with it",
    before: d,
    left: (at) => at.save("d/b", "one's"),
    right: (at) => at.calls.rename("d", "e"),
    ends: { e: "folder", "e/a": "base", "e/b": "one's" },
    same: { e: "d" },
  },
  ...LINKED,
  ...OPEN,
];
