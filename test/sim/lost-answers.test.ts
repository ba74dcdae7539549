/**
 * What was not answered. A folder that was made: it is found at the gateway, and known without being listed while
 * nobody answers. A file that was deleted: what takes its name waits for nobody to tell of it. A file that was sent, and
 * refused when it was sent again: its bytes are a version all the same.
 */
import { expect, test } from "vitest";
import type { Feature } from "../../src/contract/features.ts";
import type { HttpRequest } from "../../src/contract/http.ts";
import { inodeId } from "../../src/metadata/ids.ts";
import { ROOT_INODE } from "../../src/metadata/metadata.ts";
import { begin, there } from "./support/one-world.ts";
import { bytesOf } from "./support/programs.ts";
import { hashOf } from "./support/tree.ts";

const isMaking = ({ method, path }: HttpRequest) => method === "POST" && path === "/v1/nodes";
const LACKS: readonly { what: string; lacks: readonly Feature[] }[] = [
  { what: "conditions", lacks: ["conditions"] },
  { what: "keys", lacks: ["uploadKeys", "folderKeys", "changeKeys", "lastKey"] },
];

async function lost(lacks: readonly Feature[]) {
  const it = await begin(true, {}, { lacks });
  const making = it.once("lost-after", isMaking);
  await it.world.run(it.calls().mkdir("d"));
  await it.until(making.isSent);
  return it;
}

test.each(LACKS)("without $what: what is in it is told while nobody answers", async ({ lacks }) => {
  const it = await lost(lacks);
  await it.until(() => it.mount.process?.engine.status().dirty === 0);
  it.mount.weather.isOffline = true;
  await it.world.clock.advance(60_000);
  expect(await it.world.run(it.calls().list("d"))).toEqual([]);
  await it.save("d/a");
  expect(await it.world.run(it.calls().list("d"))).toEqual(["a"]);
  it.mount.weather.isOffline = false;
  await it.ends(["d", "d/a"]);
});

test.each(LACKS)("without $what: what somebody has put into it by then is there", async ({ lacks }) => {
  const it = await lost(lacks);
  const { outside, workspace } = it.world;
  const [folder] = (await it.world.run(outside.listFolder(workspace.root))).items;
  await it.world.run(outside.createFolder(folder?.id ?? "", "theirs"));
  await it.ends(["d", "d/theirs"]);
});

test.each(["lost", "crash"] as const)(
  "without keys, a deletion (%s): what is saved in its place is sent at once",
  async (how) => {
    const it = await begin(false);
    await it.save("a", "old");
    await it.drain();
    const nodes = async () => (await it.world.run(it.world.outside.listFolder(it.world.workspace.root))).items;
    const [old] = await nodes();
    it.world.setLag({ path: 0, journal: 60_000, id: 0 });
    const deletion = it.once("lost-after", ({ method }) => method === "DELETE");
    await it.unlink("a");
    await it.until(deletion.isSent);
    if (how === "crash") await it.again("crash");
    // Its id answers 404.
    await it.world.clock.advance(5_000);
    await it.save("a", "new");
    await it.world.clock.advance(5_000);
    const [made, ...others] = await nodes();
    expect(others).toEqual([]);
    expect(made?.id).not.toBe(old?.id);
    expect((await there(it.world)).get("a")?.content).toBe(hashOf(bytesOf("new", 40)));
    await it.ends(["a"]);
  },
);

test("without keys, a deletion that never arrived, of a node whose id is not found yet: what is saved in its place waits for it", async () => {
  const it = await begin(false);
  it.world.setLag({ path: 0, journal: 0, id: 40_000 });
  await it.save("a", "old");
  await it.drain();
  const deletion = it.once("lost-before", ({ method }) => method === "DELETE");
  await it.unlink("a");
  await it.until(deletion.isSent);
  await it.world.clock.advance(5_000);
  await it.save("a", "new");
  await it.world.clock.advance(5_000);
  expect(it.asked.filter((line) => / 4\d\d$/.test(line))).toContain("POST /v1/files/a 412");
  await it.ends(["a"]);
  expect((await there(it.world)).get("a")?.content).toBe(hashOf(bytesOf("new", 40)));
});

const NO_KEYS = ["uploadKeys", "folderKeys", "changeKeys", "lastKey"] as const;
const CHANGES = ["mkdir", "save", "rename", "write", "rename of a folder", "unlink", "rmdir"] as const;
/** Lists or the journal may be the later ones; the journal may have told of it before the request is refused, or not. */
const LATE = [
  { path: 8_000, journal: 0, id: 0 },
  { path: 3_000, journal: 5_000, id: 0 },
  { path: 8_000, journal: 5_000, id: 0 },
];
const DRAINS = CHANGES.flatMap((what) => LATE.map((lag) => ({ what, lag, late: `${lag.path} and ${lag.journal} ms` })));

test.each(DRAINS)(
  "without keys, $what: a drain waits until lists and journal show it ($late late)",
  async (drained) => {
    const { what, lag } = drained;
    const it = await begin(true, {}, { lacks: NO_KEYS });
    const { outside, workspace, clock } = it.world;
    await it.save("b", "old");
    await it.world.run(it.calls().mkdir("e"));
    await it.drain();
    it.world.setLag(lag);
    const isChange = ({ method }: HttpRequest) => method !== "GET";
    const change = it.once("lost-after", isChange);
    if (what === "mkdir") await it.world.run(it.calls().mkdir("d"));
    else if (what === "save") await it.save("d");
    else if (what === "write") await it.save("b", "new");
    else if (what === "unlink") await it.unlink("b");
    else if (what === "rmdir") await it.world.run(it.calls().rmdir("e"));
    else await it.rename(what === "rename" ? "b" : "e", "d");
    await it.until(change.isSent);
    const begun = clock.elapsed();
    await it.drain();
    expect(clock.elapsed() - begun).toBeLessThan(25_000);
    const { items, asOf } = await it.world.run(outside.listFolder(workspace.root));
    if (what === "write") expect(items[0]?.contentHash).toBe(hashOf(bytesOf("new", 40)));
    else if (what === "unlink" || what === "rmdir") expect(items.length).toBe(1);
    else expect(items.map(({ name }) => name)).toContain("d");
    expect([asOf, it.metadata().settings.getNumber("cursor")]).toEqual([it.world.position(), it.world.position()]);
    expect(it.mount.process?.engine.status().settled).toBe(true);
  },
);

test.each([{ what: "nothing", lacks: [] }, ...LACKS])(
  "without $what: bytes that arrived and were refused when they were sent again are clean, and newer ones are sent",
  async ({ lacks }) => {
    const it = await begin(true, {}, { lacks });
    await it.drain();
    it.world.setLag({ path: 3_000, journal: 5_000, id: 0 });
    const birth = it.once("lost-after", ({ method, path }) => method === "POST" && path.startsWith("/v1/files"));
    await it.save("b", "first");
    await it.until(birth.isSent);
    it.mount.weather.withdrawn = "node.node.create";
    await it.world.clock.advance(20_000);
    it.mount.weather.withdrawn = undefined;
    await it.drain();
    const inode = () => it.metadata().inodes.get(it.metadata().entries.find(ROOT_INODE, "b")?.inode ?? inodeId(0));
    const { outside, workspace } = it.world;
    const [node] = (await it.world.run(outside.listFolder(workspace.root))).items;
    expect(inode()).toMatchObject({ content: "clean", originNode: node?.id, originVersion: node?.head });
    await it.save("b", "second");
    await it.ends(["b"]);
    expect(await it.content("b")).toBe(bytesOf("second", 40).toString("latin1"));
    expect(it.asked.filter((line) => / 20[01]$/.test(line) && !line.startsWith("PATCH"))).toEqual([
      "POST /v1/files/b 201",
      "PUT /v1/nodes/ID/content 200",
    ]);
  },
);
