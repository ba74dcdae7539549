/**
 * Hard links: a file with several names. Each name is a node of its own at the gateway; all mounts show one file, whichever
 * of its nodes is written, copied, removed or changed by a client that knows of no links.
 */
import { describe, expect, test } from "vitest";
import { PLAIN, without } from "../support/features.ts";
import { isContentWrite, refuseReferences } from "./support/content-write.ts";
import { beginLinked, halfUpdated, type LinkedWorld, oneFile } from "./support/linked-world.ts";
import type { Mount } from "./support/mount.ts";
import { bytesOf, sourceOf } from "./support/programs.ts";
import { hashOf } from "./support/tree.ts";
import { TURNS_MS } from "./support/two-world.ts";

test("linked on one mount, it is one file on one that knew it, and on one that knew nothing", async () => {
  const it = await beginLinked();
  it.beta.weather.isOffline = true;
  await it.save(it.alpha, "a", "one");
  await it.drain(it.alpha);
  await it.link(it.alpha, "a", "b");
  await it.drain(it.alpha);
  it.beta.weather.isOffline = false;
  await it.world.clock.advance(5_000);
  oneFile("one")(await it.shown(it.beta));
  await it.save(it.beta, "b", "two");
  await it.drain(it.beta);
  await it.world.clock.advance(5_000);
  oneFile("two")(await it.shown(it.alpha));
  // Known before it was linked.
  await it.world.run(it.calls(it.alpha).unlink("b"));
  await it.save(it.alpha, "c", "three");
  await it.world.clock.advance(10_000);
  expect((await it.shown(it.beta)).map(({ name, links }) => [name, links])).toEqual([
    ["a", 1],
    ["c", 1],
  ]);
  await it.link(it.beta, "c", "d");
  await it.drain(it.beta);
  await it.world.clock.advance(10_000);
  expect((await it.shown(it.alpha)).map(({ name, links }) => [name, links])).toEqual([
    ["a", 1],
    ["c", 2],
    ["d", 2],
  ]);
});

test("a name that a client without links writes is a file of its own from then on, on both mounts", async () => {
  const it = await beginLinked();
  await it.save(it.alpha, "a", "old");
  await it.link(it.alpha, "a", "b");
  await it.drain(it.alpha);
  await it.world.clock.advance(3_000);
  oneFile("old")(await it.shown(it.beta));
  const source = sourceOf("outside;");
  const [, b] = await it.nodes();
  await it.world.run(it.world.outside.writeContent(b?.id ?? "", source));
  await it.world.clock.advance(TURNS_MS);
  for (const mount of [it.alpha, it.beta]) {
    expect((await it.shown(mount)).map(({ name, text, links }) => [name, text, links])).toEqual([
      ["a", "old", 1],
      ["b", "outside", 1],
    ]);
  }
  await it.save(it.alpha, "a", "newer");
  await it.drain(it.alpha);
  await it.world.clock.advance(TURNS_MS);
  expect((await it.shown(it.beta)).map(({ text }) => text)).toEqual(["newer", "outside"]);
});

test("a copy made by the gateway is a file of its own", async () => {
  const it = await beginLinked();
  await it.save(it.alpha, "a", "old");
  await it.link(it.alpha, "a", "b");
  await it.drain(it.alpha);
  const [a] = await it.nodes();
  const { root } = it.world.workspace;
  await it.world.run(it.world.outside.copyNode(root, "c", { copyOf: a?.id ?? "" }));
  await it.world.clock.advance(5_000);
  for (const mount of [it.alpha, it.beta]) {
    expect((await it.shown(mount)).map(({ name, links }) => [name, links])).toEqual([
      ["a", 2],
      ["b", 2],
      ["c", 1],
    ]);
  }
});

/** Rows written while something is done. */
async function rowsWritten(mount: Mount, work: () => Promise<unknown>): Promise<number> {
  const database = mount.process?.database;
  const total = () => database?.prepare("SELECT total_changes() AS total").pluck().get() as number;
  const before = total();
  await work();
  return total() - before;
}

test("one more name of many costs no more than one of few, where it is made and where it arrives", async () => {
  const it = await beginLinked();
  const { alpha, beta, world } = it;
  await it.save(alpha, "a", "a");
  await it.link(alpha, "a", "b");
  await it.drain(alpha);
  await world.clock.advance(5_000);
  await world.run(it.calls(beta).stat("a"));
  const made: number[] = [];
  const arrived: number[] = [];
  for (const count of [10, 60]) {
    const names = (await world.run(it.calls(alpha).list(""))).length;
    for (let more = names; more < count; more += 1) await it.link(alpha, "a", `${more}`);
    await it.drain(alpha);
    await world.clock.advance(TURNS_MS);
    made.push(await rowsWritten(alpha, () => it.link(alpha, "a", `last of ${count}`)));
    const heard = async () => {
      await it.drain(alpha);
      await world.clock.advance(5_000);
    };
    arrived.push(await rowsWritten(beta, heard));
  }
  expect((await world.run(it.calls(beta).stat("a"))).links).toBeGreaterThan(60);
  expect([made[1], arrived[1]]).toEqual([made[0], arrived[0]]);
});

test("a name made of it while somebody else saves it is no newer than what he saved", async () => {
  const it = await beginLinked();
  await it.save(it.alpha, "a", "old");
  await it.link(it.alpha, "a", "b");
  await it.drain(it.alpha);
  await it.world.run(it.calls(it.beta).list(""));
  await it.world.clock.advance(5_000);
  it.alpha.weather.latencyMs = 200;
  await it.save(it.beta, "a", "new");
  await it.link(it.alpha, "a", "c");
  await it.world.clock.advance(3_000);
  expect(it.changes.lastIndexOf("alpha POST")).toBeGreaterThan(it.changes.indexOf("beta PUT"));
  await it.world.clock.advance(TURNS_MS);
  for (const mount of [it.alpha, it.beta]) {
    const shown = await it.shown(mount);
    expect(shown.map(({ name, text, links }) => [name, text, links])).toEqual([
      ["a", "new", 3],
      ["b", "new", 3],
      ["c", "new", 3],
    ]);
  }
  expect(new Set((await it.nodes()).map(({ contentHash }) => contentHash)).size).toBe(1);
});

/** Of a linked file beta knows nothing newer than "old"; alpha has saved "new", and beta puts one of its names in place of another file. */
async function putInPlaceMeanwhile(it: LinkedWorld): Promise<void> {
  await it.save(it.alpha, "a", "old");
  await it.link(it.alpha, "a", "b");
  await it.save(it.alpha, "t", "other");
  await it.drain(it.alpha);
  await it.world.clock.advance(5_000);
  await it.world.run(it.calls(it.beta).list(""));
  it.world.setLag({ path: 0, journal: 20_000, id: 0 });
  await it.save(it.alpha, "b", "new");
  await it.world.clock.advance(5_000);
  await it.world.run(it.calls(it.beta).rename("a", "t"));
  await it.world.clock.advance(TURNS_MS);
}

async function everyName(it: LinkedWorld, text: string): Promise<void> {
  for (const mount of [it.alpha, it.beta]) {
    const shown = await it.shown(mount);
    expect(shown.map(({ name, text, links }) => [name, text, links])).toEqual([
      ["b", text, 2],
      ["t", text, 2],
    ]);
  }
  expect(new Set((await it.nodes()).map(({ contentHash }) => contentHash)).size).toBe(1);
}

test("one of its names put in place of another file while somebody else saves it is no newer than what he saved", async () => {
  const it = await beginLinked();
  await putInPlaceMeanwhile(it);
  await everyName(it, "new");
});

test("where references are refused a name put in place of another file is no newer either", async () => {
  const it = await beginLinked({ request: refuseReferences });
  await putInPlaceMeanwhile(it);
  await everyName(it, "new");
});

test("an attribute that was set elsewhere while the file was linked is there by both names", async () => {
  const it = await beginLinked();
  await it.save(it.alpha, "a", "old");
  await it.drain(it.alpha);
  await it.world.run(it.calls(it.beta).list(""));
  // The new name has its node; that they are one file is not said yet.
  it.rules.choose = ({ method, body }) =>
    method === "PATCH" && JSON.stringify(body).includes('"link"') ? "failed" : undefined;
  await it.link(it.beta, "a", "b");
  await it.world.clock.advance(3_000);
  expect(it.changes).toContain("beta POST");
  await it.world.run(it.calls(it.alpha).setxattr("a", "user.tag", "set meanwhile"));
  await it.drain(it.alpha);
  it.rules.choose = () => undefined;
  await it.drain(it.beta);
  // Before anybody else has his turn, who would take it away.
  await it.world.clock.advance(5_000);
  for (const { attributes } of await it.nodes()) expect(Object.keys(attributes.xattrs ?? {})).toEqual(["user.tag"]);
  await it.world.clock.advance(TURNS_MS);
  for (const mount of [it.alpha, it.beta]) {
    for (const name of ["a", "b"]) {
      expect(await it.world.run(it.calls(mount).getxattr(name, "user.tag"))).toBe("set meanwhile");
    }
  }
});

test("nodes that differ only in no extended attributes and an empty list of them are left as they are", async () => {
  const it = await beginLinked();
  it.beta.weather.isOffline = true;
  await it.save(it.alpha, "a", "old");
  await it.link(it.alpha, "a", "b");
  await it.drain(it.alpha);
  const [first] = await it.nodes();
  if (first === undefined) throw new Error("a");
  await it.world.run(it.world.outside.patchNode(first.id, { attributes: { xattrs: {} } }));
  it.beta.weather.isOffline = false;
  await it.world.clock.advance(10_000);
  oneFile("old")(await it.shown(it.beta));
  it.changes.length = 0;
  await it.world.clock.advance(4 * TURNS_MS);
  expect(it.changes).toEqual([]);
});

test("two names turned into a symlink elsewhere, by their attributes alone, stay one file when a program sets its time here", async () => {
  const it = await beginLinked();
  await it.save(it.alpha, "a", "old");
  await it.link(it.alpha, "a", "b");
  await it.drain(it.alpha);
  for (const { id } of await it.nodes()) {
    await it.world.run(it.world.outside.patchNode(id, { attributes: { type: "symlink", target: "elsewhere" } }));
  }
  await it.world.clock.advance(TURNS_MS);
  await it.world.run(it.calls(it.beta).utimens("a", 1_000));
  await it.drain(it.beta);
  await it.world.clock.advance(TURNS_MS);
  it.world.check();
  const old = hashOf(bytesOf("old", 40));
  expect((await it.nodes()).map(({ contentHash, attributes }) => [contentHash, attributes.link?.hash])).toEqual([
    [old, old],
    [old, old],
  ]);
  for (const mount of [it.alpha, it.beta]) {
    for (const name of ["a", "b"]) {
      expect(await it.world.run(it.calls(mount).readlink(name))).toBe("elsewhere");
      expect((await it.world.run(it.calls(mount).stat(name))).links).toBe(2);
    }
  }
});

describe("a symlink whose node has bytes, because another client made it of a file by its attributes", () => {
  async function symlinkWithBytes() {
    const it = await beginLinked();
    await it.save(it.alpha, "with-bytes", "old");
    await it.drain(it.alpha);
    const [node] = await it.nodes();
    const attributes = { type: "symlink", target: "elsewhere" } as const;
    await it.world.run(it.world.outside.patchNode(node?.id ?? "", { attributes }));
    await it.world.clock.advance(TURNS_MS);
    expect(await it.world.run(it.calls(it.alpha).readlink("with-bytes"))).toBe("elsewhere");
    return it;
  }

  /** Both mounts show these symlinks, by name, with their targets and numbers of names. */
  async function bothShow(
    it: LinkedWorld,
    symlinks: Readonly<Record<string, readonly [target: string, links: number]>>,
  ) {
    await it.drain(it.alpha);
    await it.world.clock.advance(TURNS_MS);
    it.world.check();
    expect((await it.nodes()).map(({ name }) => name).sort()).toEqual(Object.keys(symlinks).sort());
    for (const mount of [it.alpha, it.beta]) {
      for (const [name, shown] of Object.entries(symlinks)) {
        const target = await it.world.run(it.calls(mount).readlink(name));
        expect([name, target, (await it.world.run(it.calls(mount).stat(name))).links]).toEqual([name, ...shown]);
      }
    }
  }

  test("another name for it is a name of the same file", async () => {
    const it = await symlinkWithBytes();
    await it.link(it.alpha, "with-bytes", "other");
    await bothShow(it, { "with-bytes": ["elsewhere", 2], other: ["elsewhere", 2] });
  });

  for (const [from, to, target] of [
    ["with-bytes", "plain", "elsewhere"],
    ["plain", "with-bytes", "of here"],
  ] as const) {
    test(`${from} moved over ${to}: the target is kept, the other name goes, and the drain ends`, async () => {
      const it = await symlinkWithBytes();
      await it.world.run(it.calls(it.alpha).symlink("of here", "plain"));
      await it.drain(it.alpha);
      await it.world.run(it.calls(it.alpha).rename(from, to));
      await bothShow(it, { [to]: [target, 1] });
    });
  }
});

test("one name removed, the other written here: the removed one stays away, for the other's node has what came to it", async () => {
  const it = await beginLinked();
  await halfUpdated(it, () => it.shown(it.beta));
  await it.world.clock.advance(3_000);
  const [first, second] = await it.nodes();
  if (first === undefined || second === undefined) throw new Error("two nodes");
  const behind = first.modifiedAt < second.modifiedAt ? first : second;
  const ahead = behind === first ? second : first;
  it.beta.weather.isOffline = true;
  it.rules.choose = () => undefined;
  await it.drain(it.alpha);
  expect((await it.nodes()).map(({ contentHash }) => contentHash)).toEqual([ahead.contentHash, ahead.contentHash]);
  await it.world.run(it.calls(it.beta).unlink(behind.name));
  await it.save(it.beta, ahead.name, "mine");
  it.beta.weather.isOffline = false;
  await it.drain(it.beta);
  await it.world.clock.advance(TURNS_MS);
  expect((await it.nodes()).map(({ name }) => name)).toEqual([ahead.name]);
  for (const mount of [it.alpha, it.beta]) {
    expect(await it.shown(mount)).toMatchObject([{ name: ahead.name, text: "mine", links: 1 }]);
  }
});

test("removed elsewhere while it was changed here, a name leaves what was written to one made there: a drain waits for that", async () => {
  const it = await beginLinked();
  const { world, alpha, beta, calls } = it;
  await it.save(alpha, "a", "old");
  await it.link(alpha, "a", "b");
  await it.drain(alpha);
  await world.clock.advance(4_000);
  await world.run(calls(beta).list(""));
  alpha.weather.isOffline = true;
  await it.save(alpha, "a", "new");
  await it.link(beta, "a", "c");
  await it.drain(beta);
  for (const name of ["a", "b"]) await world.run(calls(beta).unlink(name));
  await it.drain(beta);
  const [made] = await it.nodes();
  let tries = 0;
  it.rules.choose = ({ method, path }) => {
    if (!isContentWrite({ method, path }) || !path.includes(made?.id ?? "?")) return undefined;
    tries += 1;
    return tries <= 3 ? "lost-before" : undefined;
  };
  alpha.weather.isOffline = false;
  await it.drain(alpha);
  const [kept, ...others] = await it.nodes();
  expect([kept?.name, others]).toEqual(["c", []]);
  expect(kept?.contentHash).toBe(hashOf(bytesOf("new", 40)));
});

test.each([
  ["a gateway without attributes", without("attributes")],
  ["a gateway without hashes", without("hashes")],
  ["a plain gateway", PLAIN],
])("at %s no file gets one more name", async (_, features) => {
  const it = await beginLinked({ features });
  await it.save(it.alpha, "a", "a");
  await expect(it.link(it.alpha, "a", "b")).rejects.toMatchObject({ code: "EPERM" });
  await it.drain(it.alpha);
  expect((await it.nodes()).map(({ name }) => name)).toEqual(["a"]);
});

test.each(["written", "removed"] as const)(
  "at a plain gateway, of what others linked, one is %s by somebody else: the other is read",
  async (how) => {
    const it = await beginLinked({ features: PLAIN });
    const { outside, workspace } = it.world;
    const bytes = bytesOf("old", 40);
    const link = { group: "others", hash: hashOf(bytes) };
    for (const name of ["a", "b"]) {
      await it.world.run(outside.upload(workspace.root, name, sourceOf(bytes), { attributes: { link } }));
    }
    await it.world.clock.advance(3_000);
    expect((await it.world.run(it.calls(it.alpha).stat("a"))).links).toBe(2);
    const [a] = await it.nodes();
    if (a === undefined) throw new Error("a is gone");
    if (how === "written") await it.world.run(outside.writeContent(a.id, sourceOf(bytesOf("new", 40)), {}));
    else await it.world.run(outside.deleteNode(a.id, { ifRevision: a.revision }));
    await it.world.clock.advance(TURNS_MS);
    const shown = (await it.shown(it.alpha)).map(({ name, text, links }) => [name, text, links]);
    expect(shown).toEqual(
      how === "written"
        ? [
            ["a", "new", 1],
            ["b", "old", 1],
          ]
        : [["b", "old", 1]],
    );
    await it.drain(it.alpha);
  },
);
