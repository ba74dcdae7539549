/** A folder made here is listed while nobody answers, however late its birth was answered. */
import { expect, test } from "vitest";
import type { Feature } from "../../src/contract/features.ts";
import type { HttpRequest } from "../../src/contract/http.ts";
import { entryId, inodeId } from "../../src/metadata/ids.ts";
import { ROOT_INODE } from "../../src/metadata/metadata.ts";
import { ALL_ARRIVED_MS, begin } from "./support/one-world.ts";

const isBirth = ({ method, path }: HttpRequest) => method === "POST" && path === "/v1/nodes";
const isListOf = ({ query }: HttpRequest, folder: string | undefined) => query.parentId === folder;
const isList = ({ query }: HttpRequest) => query.parentId !== undefined;

/** The birth of `d` is carried out and not answered; nothing is listed but `other`. */
async function unanswered(hasKeys: boolean, lacks: readonly Feature[]) {
  const it = await begin(hasKeys, {}, { lacks });
  const { outside, workspace } = it.world;
  await it.world.run(it.calls().mkdir("other"));
  await it.drain();
  const [other] = (await it.world.run(outside.listFolder(workspace.root))).items;
  let births = 0;
  it.rules.choose = (request) => {
    if (isBirth(request)) births += 1;
    if (isBirth(request) && births === 1) return "silent-after";
    return isList(request) && !isListOf(request, other?.id) ? "failed" : undefined;
  };
  await it.world.run(it.calls().mkdir("d"));
  await it.until(() => births === 1);
  const row = () => it.metadata().nodes.ofEntry(it.metadata().entries.find(ROOT_INODE, "d")?.id ?? entryId(0));
  return { ...it, other: other?.id ?? "", births: () => births, row };
}

test("answered late, without the journal: that tells of nothing which a list would not", async () => {
  const it = await unanswered(true, ["journal"]);
  const { outside } = it.world;
  await it.world.run(outside.createFolder(it.other, "more"));
  await it.until(() => it.row()?.nodeId != null, ALL_ARRIVED_MS);
  expect(it.births()).toBe(2);
  await it.world.clock.advance(5_000);
  expect(await it.world.run(it.calls().list("d"))).toEqual([]);
  it.rules.choose = () => undefined;
  await it.world.run(outside.createFolder(it.row()?.nodeId ?? "", "e"));
  await it.ends(["d", "d/e", "other", "other/more"]);
});

test("answered late by its place, while the journal has gone on: what came into it meanwhile is shown when it answers", async () => {
  const it = await unanswered(false, ["uploadKeys", "folderKeys", "lastKey"]);
  const { outside, workspace } = it.world;
  const made = (await it.world.run(outside.listFolder(workspace.root))).items.find(({ name }) => name === "d");
  await it.world.run(outside.createFolder(made?.id ?? "", "e"));
  await it.world.run(outside.createFolder(it.other, "more"));
  await it.until(
    () =>
      it.metadata().entries.find(it.metadata().entries.find(ROOT_INODE, "other")?.inode ?? inodeId(0), "more") !==
      undefined,
  );
  it.rules.choose = (request) => (isListOf(request, made?.id) ? "failed" : undefined);
  await it.until(() => it.row()?.nodeId != null, ALL_ARRIVED_MS);
  it.rules.choose = () => "failed";
  expect(await it.world.run(it.calls().list("d"))).toEqual([]);
  await it.world.clock.advance(5_000);
  expect(await it.world.run(it.calls().list("d"))).toEqual([]);
  it.rules.choose = () => undefined;
  await it.until(() => it.metadata().relists.count() === 0, ALL_ARRIVED_MS);
  expect(await it.world.run(it.calls().list("d"))).toEqual(["e"]);
  await it.ends(["d", "d/e", "other", "other/more"]);
});

test("a list that is never answered does not keep the journal from being followed", async () => {
  const it = await unanswered(false, ["uploadKeys", "folderKeys", "lastKey"]);
  const { outside, workspace } = it.world;
  const more = (name: string) => it.world.run(outside.createFolder(it.other, name));
  const isShown = (name: string) => {
    const { entries } = it.metadata();
    return entries.find(entries.find(ROOT_INODE, "other")?.inode ?? inodeId(0), name) !== undefined;
  };
  await more("first");
  await it.until(() => isShown("first"));
  const made = (await it.world.run(outside.listFolder(workspace.root))).items.find(({ name }) => name === "d");
  it.rules.choose = (request) => (isListOf(request, made?.id) ? "silent-before" : undefined);
  await it.until(() => it.metadata().relists.count() === 1, ALL_ARRIVED_MS);
  for (const name of ["second", "third"]) {
    await it.world.clock.advance(20_000);
    await more(name);
    await it.until(() => isShown(name));
  }
  expect(it.metadata().relists.count()).toBe(1);
  it.rules.choose = () => undefined;
  await it.ends(["d", "other", "other/first", "other/second", "other/third"]);
});
