/**
 * A mount of one folder of a workspace: nodes that are moved in and out, and the folder itself moved, deleted and
 * restored.
 */
import { expect, test } from "vitest";
import type { HttpRequest } from "../../src/contract/http.ts";
import type { EngineOptions } from "../../src/engine/start/index.ts";
import { bytesOf, runProgram, sourceOf } from "./support/programs.ts";
import { gatewayTree, readFile, treeOf } from "./support/tree.ts";
import { createWorld } from "./support/world.ts";

const REST_MS = 15_000;
/** Longer than a folder that cannot be read again yet is waited for. */
const LONG_MS = 120_000;

/** /projects/x is mounted, with the file "here" in it; beside it are /projects/y and /top. */
async function begin(isPrepared = true) {
  const requests: HttpRequest[] = [];
  const view: { path?: string; at?: string } = { path: "/projects/x" };
  const world = await createWorld({
    seed: 1,
    mounts: ["alpha"],
    isDown: true,
    engine: () => ({ view: { ...view } as NonNullable<EngineOptions["view"]> }),
    onAnswer: (_, request) => void requests.push(request),
  });
  const [mount] = world.mounts;
  if (mount === undefined) throw new Error("no mount");
  const { outside, workspace } = world;
  const content = (label: string) => sourceOf(bytesOf(label, 40));
  const projects = await world.run(outside.createFolder(workspace.root, "projects"));
  const x = await world.run(outside.createFolder(projects.id, "x"));
  const y = await world.run(outside.createFolder(projects.id, "y"));
  const here = await world.run(outside.upload(x.id, "here", content("here")));
  await world.run(outside.upload(workspace.root, "top", content("top")));
  await world.clock.advance(REST_MS);
  const process = () => mount.process ?? expect.unreachable("the mount is down");
  const it = {
    world,
    mount,
    outside,
    requests,
    view,
    content,
    nodes: { projects, x, y, here },
    engine: () => process().engine,
    calls: () => process().kernel,
    start: () => world.run(mount.start()),
    /** Whatever was done is heard of. */
    rest: (milliseconds = REST_MS) => world.clock.advance(milliseconds),
    shown: async () => [...(await world.run(treeOf(process().kernel, { withContent: false }))).keys()].toSorted(),
    there: async () => [...(await world.run(gatewayTree(outside, workspace.root))).keys()].toSorted(),
    save: (path: string, label = path) =>
      world.run(runProgram(process().kernel, { do: "save", path, size: 40 }, label)),
    text: async (path: string) => (await world.run(readFile(process().kernel, path))).toString("latin1"),
    move: (id: string, parentId: string, name: string) => world.run(outside.patchNode(id, { parentId, name })),
    async again(how: "crash" | "remount") {
      if (how === "crash") mount.crash();
      else await world.run(mount.stop());
      await it.start();
    },
    async drain() {
      const drained = process().engine.drain({ settle: true, signal: new AbortController().signal });
      expect(await world.run(drained)).toEqual({ drained: true, left: [] });
    },
  };
  if (isPrepared) await it.start();
  return it;
}

test("the folder is the root: nodes elsewhere are neither shown nor asked for, and new files go into it", async () => {
  const it = await begin();
  const { outside, nodes, world } = it;
  expect(await it.shown()).toEqual(["here"]);
  await it.save("new");
  await world.run(it.calls().mkdir("folder"));
  await it.save("folder/inner");
  await it.drain();
  expect(await it.there()).toEqual(
    [
      "projects",
      "projects/x",
      "projects/x/folder",
      "projects/x/folder/inner",
      "projects/x/here",
      "projects/x/new",
    ].concat(["projects/y", "top"]),
  );
  it.requests.length = 0;
  const other = await world.run(outside.upload(nodes.y.id, "other", it.content("other")));
  await world.run(outside.patchNode(nodes.y.id, { name: "z" }));
  await it.rest();
  expect(it.requests.filter(({ path }) => path.includes(other.id) || path.includes(nodes.y.id))).toEqual([]);
  expect(it.engine().status()).toMatchObject({ settled: true, folder: { id: nodes.x.id, name: "x" } });
  expect(JSON.stringify(it.engine().status())).not.toContain("projects");
  world.check();
});

test("a node that is moved out is gone, a folder with all in it; one that is moved in is there, also one that was there before", async () => {
  const it = await begin();
  const { outside, nodes, world } = it;
  const folder = await world.run(outside.createFolder(nodes.x.id, "folder"));
  const many = Array.from({ length: 450 }, (_, index) => `f${String(index).padStart(3, "0")}`);
  for (const name of many) await world.run(outside.upload(folder.id, name, it.content(name)));
  await it.rest();
  const all = ["folder", ...many.map((name) => `folder/${name}`), "here"];
  expect(await it.shown()).toEqual(all);
  await it.move(folder.id, nodes.y.id, "folder");
  await it.move(nodes.here.id, nodes.y.id, "here");
  await it.rest();
  expect(await it.shown()).toEqual([]);
  expect(await it.there()).toContain("projects/y/folder/f449");
  await it.rest(LONG_MS);
  expect(it.engine().status()).toMatchObject({ dirty: 0, settled: true });
  it.requests.length = 0;
  await it.rest(LONG_MS);
  expect(it.requests.filter(({ path }) => path.includes(folder.id) || path.includes(nodes.here.id))).toEqual([]);
  await it.move(folder.id, nodes.x.id, "folder");
  await it.move(nodes.here.id, nodes.x.id, "here");
  await it.rest();
  expect(await it.shown()).toEqual(all);
  expect(await it.text("here")).toContain("here");
  await it.again("crash");
  expect(await it.shown()).toEqual(all);
  world.check();
});

test("a node that is moved out and in again at once is there, with all in it", async () => {
  const it = await begin();
  const { outside, nodes, world } = it;
  const folder = await world.run(outside.createFolder(nodes.x.id, "folder"));
  await world.run(outside.upload(folder.id, "inner", it.content("inner")));
  await it.rest();
  expect(await it.shown()).toEqual(["folder", "folder/inner", "here"]);
  for (const milliseconds of [1, 500, 3_000]) {
    await it.move(folder.id, nodes.y.id, "folder");
    await it.move(nodes.here.id, nodes.y.id, "here");
    await it.rest(milliseconds);
    await it.move(folder.id, nodes.x.id, "folder");
    await it.move(nodes.here.id, nodes.x.id, "here");
    await it.rest(3_000);
    expect(await it.shown()).toEqual(["folder", "folder/inner", "here"]);
  }
  world.check();
});

test("changes here in a folder that is moved out stay, as new nodes; elsewhere the folder is as it was", async () => {
  const it = await begin();
  const { outside, nodes, world, mount } = it;
  const folder = await world.run(outside.createFolder(nodes.x.id, "folder"));
  for (const name of ["clean", "changed"]) await world.run(outside.upload(folder.id, name, it.content(name)));
  await it.rest();
  expect(await it.text("folder/changed")).toContain("changed");
  mount.weather.isOffline = true;
  await it.save("folder/changed", "mine");
  await it.save("folder/new", "new");
  await world.run(it.calls().rename("folder/clean", "kept"));
  await it.move(folder.id, nodes.y.id, "folder");
  mount.weather.isOffline = false;
  await it.rest(LONG_MS);
  await it.drain();
  expect(await it.shown()).toEqual(["folder", "folder/changed", "folder/new", "here", "kept"]);
  expect(await it.text("folder/changed")).toContain("mine");
  const there = await it.there();
  expect(there).toEqual(
    expect.arrayContaining(["projects/x/folder/changed", "projects/x/folder/new", "projects/x/kept"]),
  );
  expect(there.filter((path) => path.startsWith("projects/y/"))).toEqual([
    "projects/y/folder",
    "projects/y/folder/changed",
  ]);
  world.check();
});

test("a file that is moved out while a program writes to it: the written content stays here", async () => {
  const it = await begin();
  const { nodes, world } = it;
  const calls = it.calls();
  const fd = await world.run(calls.open("here", { write: true }));
  await world.run(calls.write(fd, 0, Buffer.from("mine")));
  await it.move(nodes.here.id, nodes.y.id, "here");
  it.requests.length = 0;
  await it.rest(LONG_MS);
  // It waits for the writer, without asking all the time.
  expect(it.requests.filter(({ path }) => path.includes(nodes.here.id)).length).toBeLessThan(20);
  await world.run(calls.close(fd));
  await it.rest(LONG_MS);
  await it.drain();
  expect([await it.shown(), (await it.text("here")).slice(0, 4)]).toEqual([["here"], "mine"]);
  expect(await it.there()).toEqual(expect.arrayContaining(["projects/x/here", "projects/y/here"]));
  world.check();
});

test("renamed and moved, the folder stays mounted: it is a node", async () => {
  const it = await begin();
  const { nodes, world, view } = it;
  await it.move(nodes.x.id, world.workspace.root, "elsewhere");
  await it.rest();
  await it.save("new");
  await it.drain();
  expect(await it.there()).toEqual(["elsewhere", "elsewhere/here", "elsewhere/new", "projects", "projects/y", "top"]);
  expect(it.engine().status().folder).toEqual({ id: nodes.x.id, name: "elsewhere" });
  await world.run(it.mount.stop());
  await expect(it.start()).rejects.toThrow('there is no folder /projects/x in workspace "workspace"');
  view.path = "/elsewhere";
  await it.start();
  expect(await it.shown()).toEqual(["here", "new"]);
  world.check();
});

test("deleted, the folder can be read and not changed; restored, waiting files are sent", async () => {
  const it = await begin();
  const { nodes, world, outside, mount } = it;
  expect(await it.shown()).toEqual(["here"]);
  mount.weather.isOffline = true;
  await it.save("mine");
  await world.run(outside.deleteNode(nodes.here.id));
  await world.run(outside.deleteNode(nodes.x.id));
  mount.weather.isOffline = false;
  await it.rest(LONG_MS);
  expect(await it.shown()).toEqual(["mine"]);
  const { readOnly = "" } = it.engine().status();
  expect(readOnly).toContain("was deleted");
  await expect(world.run(it.calls().mkdir("z"))).rejects.toMatchObject({ code: "EROFS" });
  expect(await it.text("mine")).toContain("mine");
  await world.run(outside.restoreNode(nodes.x.id));
  await it.rest();
  expect(it.engine().status()).toMatchObject({ dirty: 0 });
  expect(it.engine().status().readOnly).toBeUndefined();
  expect(await it.there()).toContain("projects/x/mine");
  world.check();
});

test("a path that is no folder is refused in one line, and a state dir is for one folder", async () => {
  const it = await begin(false);
  const { view, world, mount } = it;
  for (const [path, why] of [
    ["/projects/none", 'there is no folder /projects/none in workspace "workspace"'],
    ["/top", '--path: /top in workspace "workspace" is a file, expected a folder'],
  ] as const) {
    view.path = path;
    await expect(it.start()).rejects.toThrow(why);
  }
  view.path = "/projects/x";
  await it.start();
  await world.run(mount.stop());
  view.path = "/projects/y";
  await expect(it.start()).rejects.toThrow("the state dir belongs to folder /projects/x, not to folder /projects/y");
  delete view.path;
  await expect(it.start()).rejects.toThrow("the state dir belongs to folder /projects/x, not to all of the workspace");
  mount.weather.isOffline = true;
  await expect(it.start()).rejects.toThrow("the state dir belongs to folder /projects/x, not to all of the workspace");
  view.path = "/projects/x";
  await it.start();
  expect(it.engine().status()).toMatchObject({ online: false, folder: { name: "x" } });
});

test("at a moment the mount asks for nothing by itself, sends nothing, and shows the folder that was there then", async () => {
  const it = await begin(false);
  const { nodes, world, view, requests, mount } = it;
  const names = () => world.run(it.calls().list(""));
  const moment = () => new Date(world.clock.wallClock()).toISOString();
  const then = moment();
  await it.rest(1_000);
  // Another folder takes the path.
  await it.move(nodes.x.id, nodes.projects.id, "former");
  await it.move(nodes.here.id, nodes.x.id, "renamed");
  await it.move(nodes.y.id, nodes.projects.id, "x");
  await it.rest();
  view.at = then;
  await it.start();
  expect(await names()).toEqual(["here"]);
  expect(await it.text("here")).toContain("here");
  expect(it.engine().status()).toMatchObject({
    at: then,
    folder: { id: nodes.x.id, name: "x" },
    live: true,
    settled: true,
  });
  requests.length = 0;
  await world.run(it.outside.upload(nodes.x.id, "later", it.content("later")));
  await it.rest(LONG_MS);
  expect(await names()).toEqual(["here"]);
  await expect(it.save("mine")).rejects.toMatchObject({ code: "EROFS" });
  expect(requests.filter(({ method, path }) => method !== "GET" || path.includes("journal"))).toEqual([]);
  mount.weather.isOffline = true;
  await it.rest();
  expect([await names(), (await it.text("here")).includes("here")]).toEqual([["here"], true]);
  mount.weather.isOffline = false;
  delete view.at;
  await world.run(mount.stop());
  await expect(it.start()).rejects.toThrow("the state dir belongs to mounts of the past (--at)");
  world.check();
});
