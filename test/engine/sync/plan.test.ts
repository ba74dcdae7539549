/** The plan decides as docs/dev/sync.md says, one case at a time. */
import { describe, expect, test } from "vitest";
import { ALL_FEATURES } from "../../../src/contract/features.ts";
import type { Node } from "../../../src/contract/resources.ts";
import { parseRequest } from "../../../src/engine/core/index.ts";
import type { Local, LocalContent, View } from "../../../src/engine/sync/plan.ts";
import { plan } from "../../../src/engine/sync/plan.ts";
import { type Base, baseOf } from "../../../src/metadata/nodes.ts";

const FILE: Node = {
  id: "n1",
  kind: "file",
  path: "/a",
  name: "a",
  parentId: "root",
  mimeType: null,
  size: 3,
  head: "v1",
  contentHash: "one",
  lastKey: null,
  revision: 4,
  createdAt: "2026-01-01T00:00:00.000Z",
  modifiedAt: "2026-01-01T00:00:00.000Z",
  attributes: { mode: 0o644, mtime: "1.000000000" },
};
const FOLDER: Node = { ...FILE, kind: "folder", head: null, contentHash: null, size: 0 };
const CLEAN = {
  state: "clean",
  hash: "one",
  size: 3,
  originNode: "n1",
  originVersion: "v1",
  isReady: false,
} as const satisfies LocalContent;
const DIRTY = { ...CLEAN, state: "dirty", hash: "two", isReady: true } as const satisfies LocalContent;
/** There is no snapshot of it. */
const UNKNOWN = { ...DIRTY, hash: null, isReady: false } as const satisfies LocalContent;
const LOCAL: Local = { parent: "root", name: "a", attributes: FILE.attributes, content: CLEAN };
const BASE: Base = baseOf(FILE);

/** A file both sides agree on, changed as given. */
function file(change: Partial<View> = {}, local: Partial<Local> = {}): View {
  return {
    kind: "file",
    isRoot: false,
    nodeId: "n1",
    base: BASE,
    seen: null,
    local: { ...LOCAL, ...local },
    hasAttempt: false,
    hasAbandoned: false,
    isFollower: false,
    linkOrder: null,
    hasOtherNames: false,
    mayHaveWritten: false,
    hasWaited: false,
    writers: 0,
    below: 0,
    cleanEntries: 0,
    dirtyEntries: 0,
    isPlaceOccupied: false,
    partner: null,
    isCycle: false,
    isInsideItself: false,
    isReferenced: false,
    fits: true,
    features: ALL_FEATURES,
    mayRefer: true,
    may: { create: true, update: true, refer: true, delete: true },
    ...change,
  };
}

function folder(change: Partial<View> = {}, local: Partial<Local> = {}): View {
  return { ...file({}, { content: null, ...local }), kind: "folder", base: baseOf(FOLDER), ...change };
}

const UNBORN = { nodeId: null, base: null } as const;
const REMOVED = { local: null } as const;
const GONE = { seen: { deleted: true, revision: 5 } } as const;
const seen = (change: Partial<Node>) => ({ seen: { node: { ...FILE, revision: 5, ...change } } });
const edited = seen({ head: "v2", contentHash: "three" });
const NOTHING = { do: "nothing" };
const waitFor = (reason: string) => ({ do: "wait", for: reason });
const sent = (request: object) => ({ do: "send", request: expect.objectContaining(request) });

describe("creating and removing", () => {
  test("what both sides agree on needs nothing", () => expect(plan(file())).toEqual(NOTHING));
  test("create then delete is nothing", () => expect(plan(file({ ...UNBORN, ...REMOVED }))).toEqual({ do: "forget" }));
  test("a new file is uploaded with its attributes", () =>
    expect(plan(file(UNBORN, { content: DIRTY }))).toEqual(
      sent({ do: "upload", parent: "root", name: "a", hash: "two", attributes: FILE.attributes }),
    ));
  test("a new folder is made", () =>
    expect(plan(folder(UNBORN))).toEqual(sent({ do: "folder", parent: "root", name: "a" })));
  test("a new name for content the gateway has is a copy", () =>
    expect(plan(file(UNBORN, { content: { ...CLEAN, originNode: "n9", originVersion: "v9" } }))).toEqual(
      sent({ do: "copy", copyOf: "n9", version: "v9" }),
    ));
  test("a parent is born before its child", () =>
    expect(plan(file(UNBORN, { parent: null }))).toEqual(waitFor("parent")));
  test("a new name waits while another node has it", () =>
    expect(plan(file({ ...UNBORN, isPlaceOccupied: true }))).toEqual(waitFor("name")));
  test("a removed name is deleted under the revision that was agreed on", () =>
    expect(plan(file(REMOVED))).toEqual({ do: "send", request: { do: "delete", nodeId: "n1", ifRevision: 4 } }));
  test("a folder goes after what is in it", () =>
    expect(plan(folder({ ...REMOVED, below: 1 }))).toEqual(waitFor("children")));
  test("a deletion waits while its versions are needed", () =>
    expect(plan(file({ ...REMOVED, isReferenced: true }))).toEqual(waitFor("reference")));
});

describe("names of one file", () => {
  const FOLLOWER = { isFollower: true, hasOtherNames: true } as const;
  const other = { content: { ...CLEAN, hash: "two", originNode: "n9", originVersion: "v9" } };
  test("what came in by another name is not sent on, but waited for", () =>
    expect(plan(file(FOLLOWER, other))).toEqual(waitFor("names")));
  test("what is older than what came in by another name is no conflict and not shown", () =>
    expect(plan(file({ ...FOLLOWER, linkOrder: "behind", ...edited }, other))).toMatchObject({
      do: "adopt",
      isContentAdopted: false,
    }));
  test("what is newer is shown", () =>
    expect(plan(file({ ...FOLLOWER, ...edited }, other))).toMatchObject({ do: "adopt", isContentAdopted: true }));
  test("one name of several goes alone, whatever was written", () =>
    expect(plan(file({ ...GONE, hasOtherNames: true }, { content: DIRTY }))).toEqual({ do: "removeLocal" }));
});

describe("content", () => {
  test("new content goes under the head it grew from", () =>
    expect(plan(file({}, { content: DIRTY }))).toEqual(sent({ do: "content", ifHead: "v1", hash: "two" })));
  test("only attributes changed here go with it, and the mtime, which is the version's own", () => {
    const attributes = { mode: 0o644, uid: 7, mtime: "1.000000000", xattrs: { same: "AA==", other: "AQ==" } };
    const base = { ...BASE, attributes: { ...FILE.attributes, xattrs: { same: "AA==" } } };
    expect(plan(file({ base }, { content: DIRTY, attributes }))).toEqual(
      sent({ attributes: { uid: 7, mtime: "1.000000000", xattrs: { other: "AQ==" } } }),
    );
  });
  test("dirty content that is the agreed one is nothing", () =>
    expect(plan(file({}, { content: { ...DIRTY, hash: "one" } }))).toEqual(NOTHING));
  test("a snapshot of content is taken before it is sent", () =>
    expect(plan(file({}, { content: UNKNOWN }))).toEqual({ do: "snapshot" }));
  test("content that is being written waits for its writer", () =>
    expect(plan(file({ writers: 1 }, { content: UNKNOWN }))).toEqual(waitFor("writer")));
  test("a snapshot that is gone is taken again, also while a writer has the file open and has written nothing", () =>
    expect(plan(file({ writers: 1 }, { content: { ...DIRTY, isReady: false } }))).toEqual({ do: "snapshot" }));
  test("a name that took over another node's version refers to it", () =>
    expect(plan(file({}, { content: { ...CLEAN, hash: "nine", originNode: "n9", originVersion: "v9" } }))).toEqual(
      sent({ do: "reference", ifHead: "v1", copyOf: "n9", version: "v9" }),
    ));
});

describe("moving", () => {
  test("a move and changed attributes are one request under the revision", () =>
    expect(plan(file({}, { name: "b", attributes: { mode: 0o600 } }))).toEqual({
      do: "send",
      request: {
        do: "patch",
        nodeId: "n1",
        ifRevision: 4,
        parent: "root",
        name: "b",
        attributes: { mode: 0o600, mtime: null },
      },
    }));
  test("a move goes before new content", () =>
    expect(plan(file({}, { name: "b", content: DIRTY }))).toEqual(sent({ do: "patch", name: "b" })));
  test("a taken name lets the move wait, not the content", () => {
    expect(plan(file({ isPlaceOccupied: true }, { name: "b" }))).toEqual(waitFor("name"));
    expect(plan(file({ isPlaceOccupied: true }, { name: "b", content: DIRTY }))).toEqual(sent({ do: "content" }));
  });
  test("a move into an unborn folder waits for it", () =>
    expect(plan(file({}, { parent: null }))).toEqual(waitFor("parent")));
  test("a folder waits until the one it moves into is outside of it", () =>
    expect(plan(folder({ isInsideItself: true }, { parent: "n2" }))).toEqual(waitFor("parent")));
  test("a ring of moves opens through a name of its own, also if a folder of it is unborn or removed", () => {
    const breakCycle = { do: "breakCycle", ifRevision: 4 };
    expect(plan(file({ isCycle: true, isPlaceOccupied: true }, { name: "b" }))).toEqual(breakCycle);
    expect(plan(file({ isCycle: true }, { parent: null }))).toEqual(breakCycle);
    expect(plan(folder({ isCycle: true, below: 1, ...REMOVED }))).toEqual(breakCycle);
  });
  test("two that take each other's place are exchanged, before their content and attributes are sent", () => {
    const partner = { nodeId: "n2", revision: 7, hasAttempt: false };
    const taken = { isPlaceOccupied: true, isCycle: true, partner };
    const local = { parent: "n9", name: "b", content: DIRTY, attributes: { mode: 0o600 } };
    const here = { withRevision: 7, withParent: "root", withName: "a" };
    expect(plan(file(taken, local))).toEqual({
      do: "send",
      request: { do: "exchange", nodeId: "n1", ifRevision: 4, parent: "n9", name: "b", with: "n2", ...here },
    });
    expect(plan(file({ ...taken, partner: { ...partner, hasAttempt: true } }, local))).not.toMatchObject({
      request: { do: "exchange" },
    });
    const forbidden = { create: true, update: false, refer: false, delete: true };
    expect(plan(file({ ...taken, may: forbidden }, { parent: "n9", name: "b" }))).toEqual(waitFor("name"));
  });
});

describe("what was seen", () => {
  test("nothing is judged or sent while an answer is open", () =>
    expect(plan(file({ hasAttempt: true, ...edited }, { content: DIRTY }))).toEqual(waitFor("answer")));
  test("a remote edit of a clean file is taken over, mtime included", () =>
    expect(plan(file(seen({ head: "v2", contentHash: "three", attributes: { mode: 0o644 } })))).toMatchObject({
      do: "adopt",
      isContentAdopted: true,
      isPlaceAdopted: false,
      attributes: { mode: 0o644 },
    }));
  test("content taken over brings no mtime where it has none, also if one was set here", () => {
    const step = plan(
      file(seen({ head: "v2", contentHash: "three", attributes: {} }), { attributes: { mtime: "9.000000000" } }),
    );
    expect(step).toMatchObject({ do: "adopt", attributes: {} });
    expect(step.do === "adopt" && step.attributes.mtime).toBeUndefined();
  });
  test("both edited: both are kept", () =>
    expect(plan(file(edited, { content: DIRTY }))).toMatchObject({ do: "conflict", node: { head: "v2" } }));
  test("equal bytes are agreement, not a conflict", () =>
    expect(plan(file(edited, { content: { ...DIRTY, hash: "three" } }))).toMatchObject({
      do: "adopt",
      isContentAgreed: true,
      isContentAdopted: false,
    }));
  test("content not known yet is looked at before it is compared", () =>
    expect(plan(file(edited, { content: UNKNOWN }))).toEqual({ do: "snapshot" }));
  test("another node's version in its place is kept beside, also where the gateway tells no hash to compare it by", () => {
    const other = { ...CLEAN, hash: null, originNode: "n9", originVersion: "v9" };
    expect(plan(file(edited, { content: other }))).toMatchObject({ do: "conflict", node: { head: "v2" } });
  });
  test("who has it open and has written nothing is in nobody's way: the name goes on without that", () => {
    const taken = { do: "adopt", isContentAdopted: true };
    expect(plan(file({ ...edited, writers: 1 }))).toMatchObject(taken);
    // All of it was sent: a document that was saved, and stays open.
    expect(plan(file({ ...edited, writers: 1 }, { content: { ...CLEAN, state: "open" } }))).toMatchObject(taken);
    expect(plan(file({ ...edited, writers: 1 }, { content: { ...DIRTY, hash: "one" } }))).toMatchObject(taken);
    const moved = seen({ head: "v2", contentHash: "three", name: "z" });
    expect(plan(file({ ...moved, writers: 1 }))).toMatchObject({ ...taken, isPlaceAdopted: true });
    // What was changed here besides its content merges, and is sent after that.
    const changed = { name: "b", attributes: { ...FILE.attributes, mode: 0o600 } };
    expect(plan(file({ ...edited, writers: 1 }, changed))).toMatchObject({ ...taken, attributes: { mode: 0o600 } });
    expect(plan(file({ ...GONE, writers: 1 }))).toEqual({ do: "removeLocal" });
  });
  test("whom nobody hears writing is looked at first", () => {
    const held = { writers: 1, mayHaveWritten: true };
    expect(plan(file({ ...edited, ...held }))).toEqual(waitFor("look"));
    expect(plan(file({ ...GONE, ...held }))).toEqual(waitFor("look"));
    // What is known already needs no look.
    expect(plan(file({ ...edited, ...held }, { content: DIRTY }))).toEqual(waitFor("writer"));
    expect(plan(file({ ...edited, ...held, hasWaited: true }, { content: DIRTY }))).toMatchObject({ do: "conflict" });
    expect(plan(file({ ...seen({ name: "z" }), ...held }))).toMatchObject({ do: "adopt", isContentAdopted: false });
  });
  test("unsent content of an open writer keeps remote content out, but not a remote place", () => {
    for (const content of [DIRTY, UNKNOWN, { ...UNKNOWN, state: "open" }] as const) {
      const moved = seen({ head: "v2", contentHash: "three", name: "z" });
      expect(plan(file({ ...edited, writers: 1 }, { content }))).toEqual(waitFor("writer"));
      expect(plan(file({ ...moved, writers: 1 }, { content }))).toMatchObject({ do: "adoptPlace" });
      expect(plan(file({ ...GONE, writers: 1 }, { content }))).toEqual(waitFor("writer"));
    }
  });
  test("where the gateway tells no hashes, who has written has said so", () => {
    const unhashed = { ...edited, writers: 1, features: { ...ALL_FEATURES, hashes: false } };
    const content: LocalContent = { ...CLEAN, state: "open", hash: null };
    expect(plan(file(unhashed, { content }))).toMatchObject({ do: "adopt", isContentAdopted: true });
    expect(plan(file(unhashed, { content: { ...content, state: "dirty" } }))).toEqual(waitFor("writer"));
  });
  test("who writes for long keeps what he changed, under a name of its own; nothing is adopted under him", () => {
    const waited = { ...edited, writers: 1, hasWaited: true };
    expect(plan(file(waited, { content: DIRTY }))).toMatchObject({ do: "conflict" });
    expect(plan(file(waited, { content: UNKNOWN }))).toEqual({ do: "snapshot" });
    expect(plan(file(waited, { content: { ...UNKNOWN, state: "open" } }))).toEqual(waitFor("writer"));
  });
  test("a version under a writer who has written nothing since is sent as what it is; with bytes of its own after a snapshot", () => {
    const other: LocalContent = { ...CLEAN, state: "open", hash: "two", originNode: "n2", originVersion: "v2" };
    const reference = { do: "send", request: { do: "reference", copyOf: "n2", version: "v2" } };
    expect(plan(file({ writers: 1 }, { content: other }))).toMatchObject(reference);
    const lesser = { writers: 1, mayRefer: false };
    expect(plan(file(lesser, { content: other }))).toEqual({ do: "snapshot" });
    expect(plan(file({ writers: 1 }, { content: { ...other, hash: "one" } }))).toEqual({ do: "nothing" });
    // No program has it open any more, and it was not looked at.
    expect(plan(file({}, { content: other }))).toEqual({ do: "snapshot" });
    // Where the gateway tells no hashes, the first write would have made it dirty.
    const unhashed = { writers: 1, features: { ...ALL_FEATURES, hashes: false } };
    const unknown: LocalContent = { ...other, hash: null };
    expect(plan(file(unhashed, { content: unknown }))).toMatchObject(reference);
    expect(plan(file({ ...unhashed, mayRefer: false }, { content: unknown }))).toEqual({ do: "snapshot" });
    expect(plan(file(unhashed, { content: { ...unknown, state: "dirty" } }))).toEqual(waitFor("writer"));
  });
  test("what an open writer has, and somebody else wrote too, is agreed at once", () =>
    expect(plan(file({ ...edited, writers: 1 }, { content: { ...DIRTY, hash: "three" } }))).toMatchObject({
      do: "adopt",
      isContentAgreed: true,
      isContentAdopted: false,
    }));
  test("both moved: the remote place wins", () =>
    expect(plan(file(seen({ name: "z" }), { name: "b" }))).toMatchObject({ do: "adopt", isPlaceAdopted: true }));
  test("a move here outlives remote attributes", () =>
    expect(plan(file(seen({ attributes: { mode: 0o600 } }), { name: "b" }))).toMatchObject({
      do: "adopt",
      isPlaceAdopted: false,
    }));
  test("attributes merge by key, extended ones by name; what is changed here wins", () => {
    const base = { ...BASE, attributes: { mode: 0o644, uid: 1, xattrs: { a: "AA==", b: "AA==" } } };
    const local = { mode: 0o600, uid: 1, xattrs: { a: "AQ==", b: "AA==" } };
    const remote = { mode: 0o755, uid: 2, xattrs: { a: "Ag==", c: "AA==" } };
    expect(plan(file({ base, ...seen({ attributes: remote }) }, { attributes: local }))).toMatchObject({
      do: "adopt",
      attributes: { mode: 0o600, uid: 2, xattrs: { a: "AQ==", c: "AA==" } },
    });
  });
  test("of a folder's mtime the later wins", () => {
    const merged = (local: string, remote: string) =>
      plan(
        folder(
          { seen: { node: { ...FOLDER, revision: 5, attributes: { mtime: remote } } } },
          { attributes: { mtime: local } },
        ),
      );
    expect(merged("9.000000000", "10.000000000")).toMatchObject({ attributes: { mtime: "10.000000000" } });
    expect(merged("10.200000000", "10.100000000")).toMatchObject({ attributes: { mtime: "10.200000000" } });
  });
});

describe("deletion against changes", () => {
  test("removed here, edited there: the edit wins", () =>
    expect(plan(file({ ...REMOVED, ...edited }))).toMatchObject({ do: "undelete", node: { head: "v2" } }));
  test("a remote edit whose bytes nobody knows wins as well", () =>
    expect(
      plan(file({ ...REMOVED, base: { ...BASE, hash: null }, ...seen({ head: "v2", contentHash: null }) })),
    ).toMatchObject({ do: "undelete" }));
  test("removed here, merely moved or written with the same bytes there: it goes", () => {
    expect(plan(file({ ...REMOVED, ...seen({ name: "z" }) }))).toMatchObject({ do: "adopt", isPlaceAdopted: false });
    expect(plan(file({ ...REMOVED, ...seen({ head: "v2" }) }))).toMatchObject({ do: "adopt" });
  });
  test("removed on both sides is forgotten", () =>
    expect(plan(file({ ...REMOVED, ...GONE }))).toEqual({ do: "forget" }));
  test("removed there, untouched or merely moved here: it goes", () => {
    expect(plan(file(GONE))).toEqual({ do: "removeLocal" });
    expect(plan(file(GONE, { name: "b" }))).toEqual({ do: "removeLocal" });
  });
  test("removed there, changed here: it becomes a new node", () => {
    expect(plan(file(GONE, { content: DIRTY }))).toEqual({ do: "recreate" });
    expect(plan(file(GONE, { content: { ...CLEAN, hash: "nine", originNode: "n9", originVersion: "v9" } }))).toEqual({
      do: "recreate",
    });
  });
  test("removed there, not looked at here: decided later", () => {
    expect(plan(file(GONE, { content: { ...DIRTY, state: "open" } }))).toEqual({ do: "snapshot" });
    expect(plan(file(GONE, { content: UNKNOWN }))).toEqual({ do: "snapshot" });
  });
  test("a folder removed there goes after its children, and lives for those changed here", () => {
    expect(plan(folder({ ...GONE, cleanEntries: 1 }))).toEqual(waitFor("children"));
    expect(plan(folder({ ...GONE, cleanEntries: 1, dirtyEntries: 1 }))).toEqual({ do: "recreate" });
    expect(plan(folder(GONE))).toEqual({ do: "removeLocal" });
  });
  test("a root never vanishes", () =>
    expect(plan(folder({ ...GONE, isRoot: true }, { parent: null, name: "" }))).toEqual(waitFor("parent")));
});

describe("what the token may not do waits", () => {
  const may = { create: false, update: false, refer: false, delete: false };
  test.each([
    ["making a folder", folder({ ...UNBORN, may })],
    ["uploading", file({ ...UNBORN, may }, { content: DIRTY })],
    ["new content", file({ may }, { content: DIRTY })],
    ["moving", file({ may }, { name: "b" })],
    ["attributes", file({ may }, { attributes: {} })],
    ["deleting", file({ may, ...REMOVED })],
  ])("%s", (_, view) => expect(plan(view)).toEqual(waitFor("scope")));
});

test("a stored request is read back as it was", () => {
  const views = [file(REMOVED), file({}, { name: "b" }), file({}, { content: DIRTY }), folder(UNBORN)];
  const requests = views.map(plan).map((step) => (step.do === "send" ? step.request : undefined));
  expect(requests.map((request) => parseRequest(JSON.parse(JSON.stringify(request))))).toEqual(requests);
  expect(() => parseRequest({ do: "delete", nodeId: "n1" })).toThrow();
});
