/** What a node of a linked file says of content it gets from another one: when that was written. */
import { expect, test } from "vitest";
import { type Attributes, patchAttributes } from "../../src/contract/attributes.ts";
import type { Node } from "../../src/contract/resources.ts";
import { ROOT_INODE } from "../../src/metadata/metadata.ts";
import { writtenAt } from "../../src/metadata/nodes.ts";
import { advance } from "../../src/vfs/advance.ts";
import { markInode } from "../../src/vfs/changes.ts";
import { addName } from "../../src/vfs/identity.ts";
import { observeNode } from "../../src/vfs/observe.ts";
import { acknowledge } from "../../src/vfs/settle.ts";
import type { BytesWorld } from "../support/bytes-world.ts";
import { EMPTY, makeWorld, nodeOf, rowOf, sendNext, TIME } from "../support/rows-world.ts";

const LATER = "2026-01-01T00:00:05.000Z";
const LATEST = "2026-01-01T00:00:09.000Z";

const link = (hash: string, from?: { hash: string; at: string }): Attributes => ({
  link: { group: "g", hash, ...(from === undefined ? {} : { from }) },
});

const linked = (id: string, hash: string, change: Partial<Node> = {}) =>
  nodeOf(id, { contentHash: hash, attributes: link(hash), ...change });

/** What the plan sends of a node, with the attributes it has afterwards. */
function linkSent({ context }: BytesWorld, row: number, before: Attributes = {}): Attributes["link"] {
  const step = advance(context, row)?.step;
  if (step?.do !== "send" || !("hash" in step.request)) throw new Error(`no content to send: ${JSON.stringify(step)}`);
  return patchAttributes(before, step.request.attributes).link;
}

/** "a" has new content, "b" what was there before. */
async function behind() {
  const world = await makeWorld();
  observeNode(world.context, linked("a", "one"));
  observeNode(world.context, linked("b", "one"));
  const modifiedAt = LATER;
  observeNode(world.context, linked("a", "two", { head: "2nd of a", revision: 2, modifiedAt }));
  const inode = world.metadata.entries.find(ROOT_INODE, "b")?.inode ?? 0;
  world.metadata.transaction(() => markInode(world.context, inode));
  return { world, inode };
}

test("content that comes from another node says when it was written there, and from a copy of it the same", async () => {
  const { world, inode } = await behind();
  const { context, metadata } = world;
  const from = { hash: "two", at: LATER };
  expect(linkSent(world, rowOf(world, "b").id)).toEqual(link("two", from).link);
  // As somebody else may have sent it.
  const copy = { head: "2nd of b", revision: 2, modifiedAt: LATEST, attributes: link("two", from) };
  observeNode(context, linked("b", "two", copy));
  expect(rowOf(world, "b").base?.modifiedAt).toBe(LATER);
  metadata.inodes.update(inode, { originNode: "b", originVersion: "2nd of b" });
  const { id } = metadata.transaction(() => addName(context, ROOT_INODE, "c", inode, "file"));
  expect(linkSent(world, metadata.nodes.ofEntry(id)?.id ?? 0)).toEqual(link("two", from).link);
  // Agreed on, it is sent no more.
  expect(advance(context, rowOf(world, "b").id)).toBeUndefined();
});

test("content that was written here says nothing of the kind, and what it says of the same content once had from another ends", async () => {
  const { world, inode } = await behind();
  const { context, metadata } = world;
  const before = link("two", { hash: EMPTY, at: TIME });
  observeNode(context, linked("b", "two", { head: "2nd of b", revision: 2, modifiedAt: LATER, attributes: before }));
  metadata.inodes.update(inode, { content: "dirty", hash: EMPTY, size: 0, changes: 7 });
  metadata.transaction(() => markInode(context, inode));
  expect(linkSent(world, rowOf(world, "a").id)).toEqual(link(EMPTY).link);
  const sent = linkSent(world, rowOf(world, "b").id, before);
  expect(sent).toMatchObject({ group: "g", hash: EMPTY });
  const after = { contentHash: EMPTY, attributes: sent === undefined ? {} : { link: sent }, modifiedAt: LATEST };
  expect(writtenAt(linked("b", EMPTY, after))).toBe(LATEST);
});

test("content of ours of a node whose attributes somebody changed since was written when it arrived", async () => {
  const { world } = await behind();
  const { context } = world;
  const row = rowOf(world, "b");
  const attempt = sendNext(world, row, "key");
  const attributes = { ...link("two", { hash: "two", at: LATER }), mode: 0o600 };
  // Moved too, to where nobody here knows yet: what is known of it is not taken over.
  const told = { head: "2nd of b", revision: 3, modifiedAt: LATEST, parentId: "unknown", attributes };
  acknowledge(context, attempt, linked("b", "two", told), 3);
  expect(rowOf(world, "b").base).toMatchObject({ head: "2nd of b", parent: "root", modifiedAt: LATER });
});

test.each([
  { what: "of this content", hash: "two", at: LATER, is: LATER },
  { what: "of other content", hash: "one", at: LATER, is: LATEST },
  { what: "a time to come", hash: "two", at: "2026-01-02T00:00:00.000Z", is: LATEST },
])("a node's link says when its content was written: $what", ({ hash, at, is }) => {
  const attributes = link("two", { hash, at });
  expect(writtenAt(linked("a", "two", { attributes, modifiedAt: LATEST }))).toBe(is);
  // The same content, written by somebody who knows of no links.
  const left = link("newer", { hash, at });
  expect(writtenAt(linked("a", "two", { attributes: left, modifiedAt: LATEST }))).toBe(LATEST);
});
