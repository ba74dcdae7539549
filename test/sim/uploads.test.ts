/**
 * What is sent for a changed file: its bytes, a reference to a version the gateway has, or nothing; and when an upload that
 * is under way gives way to newer content or ends because its file is removed.
 */

import { describe, expect, test } from "vitest";
import { ALL_FEATURES, type Features } from "../../src/contract/features.ts";
import type { HttpRequest } from "../../src/contract/http.ts";
import { minus } from "../../src/lib/clocks.ts";
import { kernelNodeId } from "../../src/metadata/ids.ts";
import { PLAIN, without } from "../support/features.ts";
import { begin, there } from "./support/one-world.ts";
import { bytesOf, runProgram, sourceOf } from "./support/programs.ts";
import { rowsOf } from "./support/rows.ts";
import { tampered } from "./support/tampered.ts";
import { hashOf, readFile } from "./support/tree.ts";
import { createWorld } from "./support/world.ts";

describe("saved again while it is being sent", () => {
  /** So many uploads are not answered, for longer than a save is waited for. */
  const SILENT_UPLOADS = 3;

  test.each([
    ["stays open", false],
    ["is closed after the last save", true],
  ] as const)(
    "the file %s: an upload gives way to what is saved meanwhile, the third one goes on to its end",
    async (_, isClosed) => {
      const it = await begin();
      const { world, calls } = it;
      await it.save("a");
      await it.drain();
      const uploads: AbortSignal[] = [];
      it.rules.choose = ({ body, signal }) => {
        if (body?.kind !== "upload" || signal === undefined || uploads.length >= SILENT_UPLOADS) return undefined;
        uploads.push(signal);
        return "silent-before";
      };
      const handle = await world.run(calls().open("a", { write: true }));
      const write = (text: string) => world.run(calls().write(handle, 0, Buffer.from(text)));
      await write("one");
      await it.until(() => uploads.length === 1);
      // Its writing goes on: the pause is longer now.
      await write("two");
      await it.until(() => uploads.length === 2);
      expect(uploads.map(({ aborted }) => aborted)).toEqual([true, false]);
      await world.run(calls().fsync(handle));
      await write("six");
      await world.run(calls().fsync(handle));
      await it.until(() => uploads.length === 3);
      expect(uploads.map(({ aborted }) => aborted)).toEqual([true, true, false]);
      await write("ten");
      if (isClosed) await world.run(calls().close(handle));
      else await world.run(calls().fsync(handle));
      await world.clock.advance(5_000);
      expect(uploads[2]?.aborted).toBe(false);
      await it.drain();
      expect((await there(world)).get("a")?.content).toBe(hashOf(Buffer.from(await it.content("a"), "latin1")));
      expect(await it.content("a")).toMatch(/^ten/);
      if (!isClosed) await world.run(calls().close(handle));
    },
  );

  test("a snapshot taken while the file was open gives way to what its last writer leaves", async () => {
    const it = await begin();
    const { world, calls } = it;
    await it.save("a");
    await it.drain();
    let upload: AbortSignal | undefined;
    it.once("silent-before", ({ body, signal }) => {
      if (body?.kind === "upload") upload = signal;
      return upload !== undefined;
    });
    const handle = await world.run(calls().open("a", { write: true }));
    await world.run(calls().write(handle, 0, Buffer.from("one")));
    await it.until(() => upload !== undefined);
    await world.run(calls().write(handle, 0, Buffer.from("two")));
    expect(upload?.aborted).toBe(false);
    await world.run(calls().close(handle));
    expect(upload?.aborted).toBe(true);
    await world.clock.advance(3_000);
    expect((await there(world)).get("a")?.content).toBe(hashOf(Buffer.from(await it.content("a"), "latin1")));
  });
});

describe("removed while it is being sent", () => {
  /** On the disk, of a small file. */
  const BLOCK = 4096;

  /** What becomes of the request. */
  const ENDS = [
    { how: "it arrives", fault: undefined },
    { how: "it fails", fault: "failed" },
    { how: "its answer is lost", fault: "silent-after" },
    { how: "it is lost", fault: "lost-before" },
  ] as const;

  test.each(ENDS)(
    "removed, and forgotten by the kernel, while it is sent, and $how: nothing of it stays",
    async (given) => {
      const it = await begin();
      const { world, mount, calls } = it;
      await it.save("kept");
      await it.drain();
      mount.weather.latencyMs = 4_000;
      if (given.fault !== undefined) it.once(given.fault, ({ method }) => method === "POST");
      await it.save("a");
      await it.until(() => mount.process?.engine.status().uploading === 1);
      const held = () => it.engine().status().cacheBytes;
      expect(held()).toBe(2 * BLOCK);
      await it.unlink("a");
      calls().dropCaches();
      await world.clock.advance(1_000);
      mount.weather.latencyMs = 0;
      await world.clock.advance(60_000);
      await it.drain();
      await world.clock.advance(1_000);
      expect(held()).toBe(BLOCK);
      world.check();
      expect([...(await it.names())]).toEqual(["kept"]);
    },
  );

  /** What becomes of the request that is ended. */
  const ARRIVALS = [
    { how: "it is lost on the way", fault: "silent-before" },
    { how: "it arrives later", fault: "late" },
    { how: "it was carried out", fault: "silent-after" },
  ] as const;

  const GONE = [
    { what: "removed", left: ["d", "other"] },
    { what: "renamed over", left: ["d", "d/a"] },
    { what: "in a folder that is removed", left: ["other"] },
  ] as const;

  test.each(GONE.flatMap((gone) => ARRIVALS.map((arrival) => ({ ...gone, ...arrival }))))(
    "$what while it is sent, $how: the upload ends at once, a drain does not wait for it, and nothing of it stays",
    async ({ what, left, fault }) => {
      for (const isVersion of [false, true]) {
        const it = await begin();
        const { world, calls } = it;
        await it.save("other");
        await world.run(calls().mkdir("d"));
        if (isVersion) await it.save("d/a", "older");
        await it.drain();
        let upload: AbortSignal | undefined;
        it.once(fault, ({ body, signal }) => {
          if (body?.kind === "upload") upload = signal;
          return upload !== undefined;
        });
        await it.save("d/a");
        await it.until(() => upload !== undefined);
        expect(upload?.aborted).toBe(false);
        if (what === "renamed over") await it.rename("other", "d/a");
        else await it.unlink("d/a");
        if (what === "in a folder that is removed") await world.run(calls().rmdir("d"));
        expect(upload?.aborted).toBe(true);
        const begun = world.clock.elapsed();
        await it.drain();
        expect(minus(world.clock.elapsed(), begun)).toBeLessThan(5_000);
        await it.ends(left);
      }
    },
  );
});

describe("saved with the bytes the gateway has", () => {
  const WAYS = (["save", "replace", "recreate"] as const).flatMap((how) =>
    [
      { what: "a whole gateway", features: ALL_FEATURES },
      { what: "a gateway without hashes", features: without("hashes") },
      { what: "a plain gateway", features: PLAIN },
    ].flatMap((where) => [0, 40].map((size) => ({ how, size, ...where }))),
  );

  test.each(WAYS)(
    "$how $size bytes as they were, at $what: clean, with no version more",
    async ({ how, size, features }) => {
      const it = await begin({}, { features });
      const write = (by: "save" | typeof how) =>
        it.world.run(runProgram(it.calls(), { do: by, path: "a", size }, "alike"));
      await write("save");
      await it.drain();
      const { outside, workspace } = it.world;
      const node = async () => (await it.world.run(outside.listFolder(workspace.root))).items[0];
      const before = await node();
      await write(how);
      await it.drain();
      const inode = it.rows().inode("a");
      expect(inode).toMatchObject({ content: "clean", originNode: before?.id, originVersion: before?.head });
      expect((await node())?.head).toBe(before?.head);
      await it.save("a", "other");
      await it.ends(["a"]);
      expect(await it.content("a")).toBe(bytesOf("other", 40).toString("latin1"));
    },
  );

  test.each([0, 40])("%i bytes, made elsewhere at the same moment: one file, clean", async (size) => {
    const it = await begin();
    await it.drain();
    const { outside, workspace } = it.world;
    it.world.setLag({ path: 3_000, journal: 3_000, id: 0 });
    const theirs = await it.world.run(outside.upload(workspace.root, "a", sourceOf(bytesOf("alike", size))));
    await it.world.run(runProgram(it.calls(), { do: "save", path: "a", size }, "alike"));
    await it.world.clock.advance(10_000);
    await it.drain();
    const inode = it.rows().inode("a");
    expect(inode).toMatchObject({ content: "clean", originNode: theirs.id, originVersion: theirs.head });
    await it.ends(["a"]);
  });
});

describe("saved elsewhere with the bytes it had", () => {
  const CALLER = { uid: 0, gid: 0, pid: 1, umask: 0o22, signal: new AbortController().signal };

  const READING = { read: true, write: false, append: false, truncate: false, exclusive: false };

  const HEARD_MS = 5_000;

  const BYTES = Buffer.from("the same bytes, twice");

  /** Known here and open, none of it read, when it is saved once more. */
  async function savedAgain(features: Features) {
    const world = await createWorld({ seed: 1, mounts: ["alpha"], features });
    const [mount] = world.mounts;
    if (mount?.process === undefined) throw new Error("no mount");
    const { kernel, engine, database } = mount.process;
    const source = sourceOf(BYTES);
    const node = await world.run(world.outside.upload(world.workspace.root, "a", source));
    await world.clock.advance(HEARD_MS);
    await world.run(kernel.list(""));
    const id = kernelNodeId(rowsOf(database).inode("a")?.kernelNodeId ?? 0);
    const { handle } = await world.run(engine.fileSystem.open(CALLER, id, READING));
    await world.run(world.outside.writeContent(node.id, source));
    await world.clock.advance(HEARD_MS);
    /** Of the file that is open here, what has not been fetched. */
    const missing = () => database.prepare("SELECT missing FROM live WHERE lineage = ?").pluck().get(id);
    return { world, kernel, engine, handle, missing };
  }

  for (const features of [ALL_FEATURES, PLAIN]) {
    const where = features.isFull ? "" : ", where only heads can be read";
    test(`it is read by who has it open${where}`, async () => {
      const { world, engine, handle, missing } = await savedAgain(features);
      expect(missing()).not.toBe("[]");
      expect(Buffer.from(await world.run(engine.fileSystem.read(CALLER, handle, 0, 100)))).toEqual(BYTES);
      await world.run(engine.fileSystem.release(handle));
      expect(missing()).toBe("[]");
      world.check();
    });

    test(`it is read by who opens it later${where}`, async () => {
      const { world, kernel, engine, handle } = await savedAgain(features);
      await world.run(engine.fileSystem.release(handle));
      expect(await world.run(readFile(kernel, "a"))).toEqual(BYTES);
      world.check();
    });
  }

  test("made here and there with the same bytes, the local copy may go when room is needed", async () => {
    const it = await begin({}, { settings: { cacheLimit: 0 } });
    const { world, mount } = it;
    const { outside, workspace } = world;
    await it.names();
    mount.weather.isOffline = true;
    await it.save("a", "same");
    await world.run(outside.upload(workspace.root, "a", sourceOf(bytesOf("same", 40))));
    expect(it.engine().status().cacheBytes).toBeGreaterThan(0);
    mount.weather.isOffline = false;
    await world.clock.advance(60_000);
    expect(await it.names()).toEqual(["a"]);
    expect(it.rows().inode("a")?.content).toBe("clean");
    // The cache may hold nothing, which is looked at when something comes into it.
    await world.run(outside.upload(workspace.root, "b", sourceOf(bytesOf("another", 40))));
    await world.clock.advance(5_000);
    await it.content("b");
    await world.clock.advance(5_000);
    expect(it.engine().status().cacheBytes).toBe(0);
    expect(await it.content("a")).toBe(bytesOf("same", 40).toString("latin1"));
    world.check();
  });
});

describe("sent by reference to another version", () => {
  const isDeletion = ({ method }: HttpRequest) => method === "DELETE";

  test("a node stays until the name its file has now has its content, whoever has it open", async () => {
    const it = await begin();
    await it.save("a");
    await it.save("b");
    await it.drain();
    const held = await it.world.run(it.calls().open("b", { write: true }));
    it.asked.length = 0;
    await it.rename("b", "a");
    await it.world.clock.advance(30_000);
    // What b was is there as a version of b's node, and nothing was written since.
    expect(it.asked).toEqual(["POST /v1/nodes/ID/versions 200", "DELETE /v1/nodes/ID 200"]);
    expect([...(await there(it.world)).keys()]).toEqual(["a"]);
    it.asked.length = 0;
    await it.world.run(it.calls().close(held));
    await it.ends(["a"]);
    expect(it.asked).toEqual([]);
    expect(await it.content("a")).toBe(bytesOf("b", 40).toString("latin1"));
  });

  test("a file does not become a version of a node that is being deleted", async () => {
    const it = await begin();
    await it.save("a");
    await it.drain();
    // The node goes back to a: b is a new file that grew from its version.
    await it.rename("a", "b");
    const held = await it.world.run(it.calls().open("b", { write: true }));
    await it.world.run(it.calls().write(held, 0, bytesOf("a", 40)));
    await it.save("a", "new");
    await it.unlink("a");
    const deletion = it.once("silent-after", isDeletion);
    await it.until(deletion.isSent);
    // With the very bytes of the version it grew from.
    await it.world.run(it.calls().close(held));
    await it.ends(["b"]);
    expect(it.asked.filter((line) => line.startsWith("POST"))).toEqual([
      "POST /v1/files/a 201",
      "POST /v1/files/b 201",
    ]);
  });
});

describe("a reference that the gateway refuses", () => {
  const TIMEOUT = { timeout: 120_000 };

  const isReference = ({ body }: HttpRequest) => body?.kind === "json" && "copyOf" in Object(body.value);

  /** Files "a" and "b"; what names another node's content is refused on its way. */
  async function refusing(cacheLimit: number) {
    const it = await tampered({ settings: { cacheLimit } });
    const { world, tamper } = it;
    await it.save("a", "content of a");
    await it.save("b", "content of b");
    await it.drain();
    const content = await it.content("a");
    await world.clock.advance(10_000);
    let references = 0;
    let reads = 0;
    const unknown = "019b76da-0000-7000-8000-000000000000";
    tamper.change = (request) => {
      const { body } = request;
      if (body?.kind !== "json" || !isReference(request)) return request;
      references += 1;
      return { ...request, body: { ...body, value: Object.assign({}, body.value, { copyOf: unknown }) } };
    };
    return {
      ...it,
      text: content,
      /** Requests that were refused. */
      refused: () => ({ references, reads }),
      /** Its bytes are not to be had either. */
      hide() {
        const before = tamper.change;
        tamper.change = (request) => {
          if (request.method !== "GET" || !request.path.endsWith("/content")) return before(request);
          reads += 1;
          return { ...request, path: `/v1/nodes/${unknown}/content` };
        };
      },
      contentOf: async (name: string) => (await there(world)).get(name)?.content,
    };
  }

  test.each([
    { where: "kept here", cacheLimit: 1 << 20 },
    { where: "fetched for it", cacheLimit: 0 },
  ])("refused once, the bytes are sent: $where", TIMEOUT, async ({ cacheLimit }) => {
    const it = await refusing(cacheLimit);
    await it.rename("a", "b");
    await it.ends(["b"]);
    expect([it.refused().references, await it.contentOf("b")]).toEqual([1, hashOf(Buffer.from(it.text))]);
  });

  test(
    "with bytes that cannot be had either it is parked with the reason, in nobody's way, and goes when it can",
    TIMEOUT,
    async () => {
      const it = await refusing(0);
      it.hide();
      await it.rename("a", "b");
      await it.world.clock.advance(5_000);
      const trying = (await it.queue()).find(({ path }) => path === "/b");
      expect(trying).toMatchObject({ what: "version", state: "retry" });
      expect(trying?.why).toMatch(/^its content could not be read \d times: /);
      await it.save("other");
      await it.world.clock.advance(10_000);
      expect(await it.contentOf("other")).toBeDefined();
      await it.world.clock.advance(300_000);
      const [parked, waiting] = await it.queue();
      expect(parked).toMatchObject({ path: "/b", state: "parked" });
      expect(parked?.why).toContain("what is missing of its content cannot be had: ");
      expect(waiting).toMatchObject({ path: "/a", what: "delete", why: "its content is still needed by another one" });
      expect(it.engine().status().parked).toBe(1);
      const { references, reads } = it.refused();
      expect([references, reads < 12]).toEqual([1, true]);
      it.heal();
      expect(await it.world.run(it.engine().retry(["/b"]))).toEqual({ retried: 1, unknown: [] });
      await it.ends(["b", "other"]);
      expect(await it.contentOf("b")).toBe(hashOf(Buffer.from(it.text)));
    },
  );
});

describe("at plain gateways", () => {
  test.each([
    { what: "with hashes", features: PLAIN },
    { what: "without hashes", features: { ...PLAIN, hashes: false } },
  ])("$what: what is empty is moved over a file", async ({ features }) => {
    const it = await begin({}, { features });
    const { run } = it.world;
    for (const name of ["a", "b"]) await it.save(name);
    await run(it.calls().symlink("target", "link"));
    await run(it.calls().close(await run(it.calls().open("empty", { write: true, create: true }))));
    await it.drain();
    // They are versions the gateway has by now.
    await it.again("remount");
    await it.rename("link", "a");
    await it.rename("empty", "b");
    await it.ends(["a", "b"]);
    const tree = await there(it.world);
    expect(["a", "b"].map((name) => tree.get(name)?.kind)).toEqual(["symlink", "file"]);
    expect(await run(it.calls().readlink("a"))).toBe("target");
    expect(await it.content("b")).toBe("");
  });

  test("renamed over another while offline, and its node deleted elsewhere before that was sent", {
    timeout: 120_000,
  }, async () => {
    const it = await begin({}, { features: PLAIN, settings: { cacheLimit: 0 } });
    const { world, mount, calls } = it;
    const { outside, workspace } = world;
    await it.save("a", "content of a");
    await it.save("b", "content of b");
    await it.drain();
    const content = await it.content("a");
    const reader = await world.run(calls().open("a", {}));
    await world.run(calls().read(reader, 0, 100));
    mount.weather.isOffline = true;
    await world.clock.advance(10_000);
    await it.rename("a", "b");
    await world.run(calls().close(reader));
    // The cache may hold nothing.
    await world.clock.advance(10_000);
    const { items } = await world.run(outside.listFolder(workspace.root, { name: "a" }));
    const [node] = items;
    if (node === undefined) throw new Error("it is gone");
    await world.run(outside.deleteNode(node.id, { ifRevision: node.revision }));
    mount.weather.isOffline = false;
    await it.ends(["b"]);
    expect((await there(world)).get("b")?.content).toBe(hashOf(Buffer.from(content)));
    // It goes like everything else once it is the node's own.
    expect(await it.content("b")).toBe(content);
    await world.clock.advance(10_000);
    expect(it.engine().status().cacheBytes).toBe(0);
  });
});
