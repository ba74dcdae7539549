/** The conflicts about files with several names, and about files that are open. */
import assert from "node:assert/strict";
import type { Conflict, Hands } from "./conflict-run.ts";

const a = (at: Hands) => at.save("a", "base");
const d = async (at: Hands) => {
  await at.calls.mkdir("d");
  await at.save("d/a", "base");
};
/** One file of two names. */
const linked = async (at: Hands) => {
  await a(at);
  await at.calls.link("a", "b");
};

/** Names of one file. */
export const LINKED: readonly Conflict[] = [
  {
    one: "saves `a`, of which `b` is another name",
    other: "saves `b`",
    why: "names of one file are one file, also in a conflict",
    before: linked,
    left: (at) => at.save("a", "one's"),
    right: (at) => at.save("b", "the other's"),
    ends: { a: "one's, 2 names", b: "one's, 2 names", "a (conflict)": "the other's" },
    otherFirst: { a: "the other's, 2 names", b: "the other's, 2 names", "b (conflict)": "one's" },
    same: { a: "a", b: "b" },
  },
  {
    one: "saves `a`, of which `b` is another name",
    other: "removes `b`",
    why: "one name of several goes alone: nothing is lost with it",
    before: linked,
    left: (at) => at.save("a", "one's"),
    right: (at) => at.calls.unlink("b"),
    ends: { a: "one's" },
    same: { a: "a" },
  },
  {
    one: "saves `a`, of which `b` is another name",
    other: "removes `a` and `b`",
    why: "the edit wins, for which one name is enough",
    before: linked,
    left: (at) => at.save("a", "one's"),
    right: async (at) => {
      await at.calls.unlink("a");
      await at.calls.unlink("b");
    },
    ends: { a: "one's" },
    otherFirst: { b: "one's" },
  },
  {
    one: "saves `a`, of which `b` is another name",
    other: "renames `b` to `c`",
    why: "a save follows its file, under all its names",
    before: linked,
    left: (at) => at.save("a", "one's"),
    right: (at) => at.calls.rename("b", "c"),
    ends: { a: "one's, 2 names", c: "one's, 2 names" },
    same: { a: "a", c: "b" },
  },
  {
    one: "saves `a`, of which `b` is another name",
    other: "changes the mode of `b`",
    why: "content and attributes are apart",
    before: linked,
    left: (at) => at.save("a", "one's"),
    right: (at) => at.calls.chmod("b", 0o600),
    ends: { a: "one's, mode 600, 2 names", b: "one's, mode 600, 2 names" },
    same: { a: "a", b: "b" },
  },
  {
    one: "saves `a`, of which `b` is another name",
    other: "renames a new file over `b`",
    why: "a name that was replaced is no name of that file any more",
    before: linked,
    left: (at) => at.save("a", "one's"),
    right: (at) => at.replace("b", "the other's"),
    ends: { a: "one's, 2 names", b: "one's, 2 names", "b (conflict)": "the other's" },
    otherFirst: { a: "one's", b: "the other's" },
    same: { a: "a", b: "b" },
  },
  {
    one: "gives `a` another name `b`",
    other: "saves `a`",
    why: "a save that knows nothing of the other name is not for it",
    before: a,
    left: (at) => at.calls.link("a", "b"),
    right: (at) => at.save("a", "the other's"),
    ends: { a: "the other's", b: "base" },
    otherFirst: { a: "the other's, 2 names", b: "the other's, 2 names" },
    same: { a: "a" },
  },
  {
    one: "gives `a` another name `b`",
    other: "gives `a` another name `c`",
    why: "all are names of one file",
    before: a,
    left: (at) => at.calls.link("a", "b"),
    right: (at) => at.calls.link("a", "c"),
    ends: { a: "base, 3 names", b: "base, 3 names", c: "base, 3 names" },
    same: { a: "a" },
  },
  {
    one: "gives `a` another name `b`",
    other: "removes `a`",
    why: "the other name stays",
    before: a,
    left: (at) => at.calls.link("a", "b"),
    right: (at) => at.calls.unlink("a"),
    ends: { b: "base" },
  },
  {
    one: "gives `a` another name `b`",
    other: "renames `a` to `c`",
    why: "a name is a name of the file, not of a place",
    before: a,
    left: (at) => at.calls.link("a", "b"),
    right: (at) => at.calls.rename("a", "c"),
    ends: { b: "base, 2 names", c: "base, 2 names" },
    same: { c: "a" },
  },
  {
    one: "saves `a`, of which `b` is another name",
    other: "is writing `b`",
    why: "nothing is taken over before the written content is sent, by whichever name",
    before: linked,
    left: (at) => at.save("a", "one's"),
    right: (at) => at.write("b", "the other's"),
    meanwhile: async (_, right) => assert.equal(await textOf(right, "a"), "the other's"),
    ends: { a: "one's, 2 names", b: "one's, 2 names", "a (conflict)": "the other's" },
    otherFirst: { a: "the other's, 2 names", b: "the other's, 2 names", "b (conflict)": "one's" },
    same: { a: "a", b: "b" },
  },
];

const HELD = { write: true } as const;
const removeAll = async (at: Hands) => {
  await at.calls.unlink("d/a");
  await at.calls.rmdir("d");
};

/** What is open for writing, and has nothing unsent in it. */
const HELD_OPEN: readonly Conflict[] = [
  {
    one: "saves `a`",
    other: "has `a` open for writing",
    why: "a file that is merely open blocks nothing, and goes on showing the old bytes",
    before: a,
    left: (at) => at.save("a", "one's"),
    right: (at) => at.hold("a", HELD),
    async meanwhile(_, right) {
      assert.equal(await right.reread(), "base");
      assert.equal(await textOf(right, "a"), "one's");
    },
    ends: { a: "one's" },
    same: { a: "a" },
  },
  {
    one: "saves `a`",
    other: "has `a` open for writing, and writes after that",
    why: "a write to the old bytes makes a copy; later writes are versions of that copy",
    before: a,
    left: (at) => at.save("a", "one's"),
    right: (at) => at.hold("a", HELD),
    meanwhile: (_, right) => right.writeOn("the other's"),
    ends: { a: "one's", "a (conflict)": "the other's" },
    same: { a: "a" },
  },
  {
    one: "saves `a` by renaming a new file over it",
    other: "has `a` open for writing, and writes after that",
    why: "however a save is done, it is a save",
    before: a,
    left: (at) => at.replace("a", "one's"),
    right: (at) => at.hold("a", HELD),
    meanwhile: (_, right) => right.writeOn("the other's"),
    ends: { a: "one's", "a (conflict)": "the other's" },
    same: { a: "a" },
  },
  {
    one: "saves `a`, and the other does too, by renaming a new file over it",
    other: "has `a` open for writing in a third program",
    why: "a save of the shown file is in no conflict, even if a program has the old bytes open",
    before: a,
    left: (at) => at.save("a", "one's"),
    right: (at) => at.hold("a", HELD),
    meanwhile: async (_, right) => right.replace("a", `${await textOf(right, "a")}, edited`),
    ends: { a: "one's, edited" },
    same: { a: "a" },
  },
  {
    one: "saves `a`, of which `b` is another name",
    other: "has `b` open for writing, and writes after that",
    why: "all names show what was saved",
    before: linked,
    left: (at) => at.save("a", "one's"),
    right: (at) => at.hold("b", HELD),
    async meanwhile(_, right) {
      assert.equal(await textOf(right, "b"), "one's");
      await right.writeOn("the other's");
    },
    ends: { a: "one's, 2 names", b: "one's, 2 names", "b (conflict)": "the other's" },
    same: { a: "a", b: "b" },
  },
  {
    one: "removes `a`",
    other: "has `a` open for writing",
    why: "a file that is merely open blocks nothing, and goes on showing the old bytes",
    before: a,
    left: (at) => at.calls.unlink("a"),
    right: (at) => at.hold("a", HELD),
    async meanwhile(_, right) {
      assert.equal(await right.reread(), "base");
      assert.deepEqual(await right.calls.list(""), []);
    },
    ends: {},
  },
  {
    one: "removes `a`",
    other: "has `a` open for writing, and writes after that",
    why: "the name is free, and the written file comes back under it",
    before: a,
    left: (at) => at.calls.unlink("a"),
    right: (at) => at.hold("a", HELD),
    meanwhile: (_, right) => right.writeOn("the other's"),
    ends: { a: "the other's" },
  },
  {
    one: "removes `a`",
    other: "has `a` open for writing, makes another `a`, and writes to the old one after that",
    why: "the name is taken: a write to the old bytes makes a copy",
    before: a,
    left: (at) => at.calls.unlink("a"),
    right: (at) => at.hold("a", HELD),
    async meanwhile(_, right) {
      await right.save("a", "another");
      await right.writeOn("the other's");
    },
    ends: { a: "another", "a (conflict)": "the other's" },
  },
  {
    one: "removes `d` with all in it",
    other: "has `d/a` open for writing, and writes after that",
    why: "the written file comes back under its name, and its folder with it",
    before: d,
    left: removeAll,
    right: (at) => at.hold("d/a", HELD),
    async meanwhile(_, right) {
      assert.deepEqual(await right.calls.list(""), []);
      await right.writeOn("the other's");
    },
    ends: { d: "folder", "d/a": "the other's" },
  },
];

/** What is open. */
export const OPEN: readonly Conflict[] = [
  {
    one: "saves `a`",
    other: "has `a` open for reading",
    why: "an open file goes on showing the old bytes",
    before: a,
    left: (at) => at.save("a", "one's"),
    right: (at) => at.hold("a"),
    async meanwhile(_, right) {
      assert.equal(await right.reread(), "base");
      assert.equal(await textOf(right, "a"), "one's");
    },
    ends: { a: "one's" },
    same: { a: "a" },
  },
  {
    one: "removes `a`",
    other: "has `a` open for reading",
    why: "an open file goes on showing the old bytes",
    before: a,
    left: (at) => at.calls.unlink("a"),
    right: (at) => at.hold("a"),
    async meanwhile(_, right) {
      assert.equal(await right.reread(), "base");
      assert.deepEqual(await right.calls.list(""), []);
    },
    ends: {},
  },
  ...HELD_OPEN,
  {
    one: "saves `a`",
    other: "is writing `a`",
    why: "nothing is taken over before the written content is sent; if that comes second, both are kept when the file is closed",
    before: a,
    left: (at) => at.save("a", "one's"),
    right: (at) => at.write("a", "the other's"),
    meanwhile: async (_, right) => assert.equal(await textOf(right, "a"), "the other's"),
    ends: { a: "one's", "a (conflict)": "the other's" },
    otherFirst: { a: "the other's", "a (conflict)": "one's" },
    same: { a: "a" },
  },
  {
    one: "saves `a`",
    other: "is writing `a`, for more than a quarter of an hour",
    why: "both are kept then, and the program goes on writing in the copy",
    before: a,
    left: (at) => at.save("a", "one's"),
    right: (at) => at.write("a", "the other's"),
    waitMs: 17 * 60_000,
    meanwhile: async (left) => assert.equal((await left.calls.list("")).length, 2),
    ends: { a: "one's", "a (conflict)": "the other's" },
    otherFirst: { a: "the other's", "a (conflict)": "one's" },
    same: { a: "a" },
  },
  {
    one: "removes `a`",
    other: "is writing `a`",
    why: "the edit wins; it is a new node",
    before: a,
    left: (at) => at.calls.unlink("a"),
    right: (at) => at.write("a", "the other's"),
    meanwhile: async (_, right) => assert.equal(await textOf(right, "a"), "the other's"),
    ends: { a: "the other's" },
  },
  {
    one: "removes `a`",
    other: "is writing `a`, for more than a quarter of an hour",
    why: "the edit wins, and does not wait for the end of it",
    before: a,
    left: (at) => at.calls.unlink("a"),
    right: (at) => at.write("a", "the other's"),
    waitMs: 17 * 60_000,
    meanwhile: async (left) => assert.deepEqual(await left.calls.list(""), ["a"]),
    ends: { a: "the other's" },
  },
  {
    one: "renames `a` to `b`",
    other: "is writing `a`",
    why: "a save follows its file, also while it is open",
    before: a,
    left: (at) => at.calls.rename("a", "b"),
    right: (at) => at.write("a", "the other's"),
    meanwhile: async (_, right) => assert.equal(await textOf(right, "b"), "the other's"),
    ends: { b: "the other's" },
    same: { b: "a" },
  },
  {
    one: "saves `a`, renames it to `b` and puts a folder in its place",
    other: "is writing `a`",
    why: "the place is taken over at once, the content when the file is closed",
    before: a,
    left: async (at) => {
      await at.save("a", "one's");
      await at.calls.mkdir("d");
      await at.calls.rename("a", "b");
      await at.calls.rename("d", "a");
    },
    right: (at) => at.write("a", "the other's"),
    meanwhile: async (_, right) => assert.equal(await textOf(right, "b"), "the other's"),
    ends: { a: "folder", b: "one's", "b (conflict)": "the other's" },
    otherFirst: { a: "folder", b: "the other's", "b (conflict)": "one's" },
    same: { b: "a" },
  },
  {
    one: "removes `d` with all in it",
    other: "is writing `d/a`",
    why: "the edit wins, and its folder with it",
    before: d,
    left: removeAll,
    right: (at) => at.write("d/a", "the other's"),
    ends: { d: "folder", "d/a": "the other's" },
  },
];

async function textOf(at: Hands, path: string): Promise<string> {
  const fd = await at.calls.open(path, {});
  const bytes = await at.calls.read(fd, 0, 1_000);
  await at.calls.close(fd);
  return bytes.toString();
}
