/** Calls of libfuse on the real engine: what readers of one path see where others change what is there. */
import { expect, it } from "vitest";
import { FsError } from "../../src/engine/api/index.ts";
import { createCalls } from "../../src/fuse-native/calls.ts";
import { createPaths } from "../../src/fuse-native/paths.ts";
import { gate } from "../fuse/fake-kernel.ts";
import { edit } from "../sim/support/outside.ts";
import { createWorld } from "../sim/support/world.ts";

const CALLER = { uid: 0, gid: 0, pid: 0, signal: new AbortController().signal };
const HEARD_MS = 5_000;

/** A mount by libfuse: its kernel can be told of nothing. */
async function begin() {
  let forgetFolders = () => {};
  const world = await createWorld({
    seed: 1,
    mounts: ["alpha"],
    isPassing: false,
    sabotage: {
      kernelCache: () => ({ expiresNames: false, tell: () => forgetFolders(), everything: () => forgetFolders() }),
    },
  });
  const engine = world.mounts[0]?.process?.engine;
  if (engine === undefined) throw new Error("no mount");
  const paths = createPaths(engine.fileSystem);
  const calls = createCalls(engine.fileSystem, paths);
  forgetFolders = () => paths.forgetFolders();
  let edits = 0;
  const elsewhere = async (what: "write" | "delete" | "move", path: string, to = "") => {
    edits += 1;
    await edit(world, { do: "outside", edit: what, path, to }, `${edits}`);
    await world.clock.advance(HEARD_MS);
  };
  const open = (path: string) => world.run(calls.open(CALLER, path, 0));
  const read = async (path: string, number: number) =>
    Buffer.from(await world.run(calls.read(CALLER, path, number, 0, 99))).toString();
  return { world, calls, engine, elsewhere, open, read };
}

it("a reader of what is gone goes on in what comes in its place, as who opens that does", async () => {
  const { elsewhere, open, read } = await begin();
  await elsewhere("write", "f");
  const first = await open("/f");
  const one = await read("/f", first);
  await elsewhere("delete", "f");
  expect(await read("/f", first)).toBe(one);
  await elsewhere("write", "f");
  const second = await open("/f");
  const two = await read("/f", second);
  expect(two).not.toBe(one);
  // One file to the kernel, and one set of pages: they must not be of two contents.
  expect(await read("/f", first)).toBe(two);
});

it("a reader whose path could not be followed at that moment follows it with its next read", async () => {
  const { world, calls, engine, elsewhere, open, read } = await begin();
  await elsewhere("write", "f");
  const number = await open("/f");
  const one = await read("/f", number);
  await elsewhere("write", "f");
  const { lookup } = engine.fileSystem;
  engine.fileSystem.lookup = () => Promise.reject(new FsError("EIO", "no answer"));
  expect(await read("/f", number)).toBe(one);
  engine.fileSystem.lookup = lookup;
  expect(await read("/f", number)).not.toBe(one);
  await world.run(calls.release(number));
});

it("a reader whose path leads elsewhere by the time its file is open follows it with its first read", async () => {
  const { world, calls, engine, elsewhere, open, read } = await begin();
  await elsewhere("write", "f");
  await elsewhere("write", "g");
  const two = await read("/g", await open("/g"));
  const { fileSystem } = engine;
  const disk = gate<void>();
  const now = fileSystem.open;
  fileSystem.open = (...parameters) => disk.promise.then(() => now(...parameters));
  const opening = calls.open(CALLER, "/f", 0);
  await elsewhere("move", "f", "h");
  await elsewhere("move", "g", "f");
  fileSystem.open = now;
  disk.open();
  const first = await world.run(opening);
  expect(await read("/f", await open("/f"))).toBe(two);
  expect(await read("/f", first)).toBe(two);
});

it.each([
  ["longer", 100],
  ["shorter", 1],
])(
  "who appends to a file that was renamed elsewhere adds to its end, though a %s one has its name",
  async (_, size) => {
    const { world, calls, elsewhere, open, read } = await begin();
    await elsewhere("write", "f");
    const one = await read("/f", await open("/f"));
    const APPEND = 0o2001;
    const writer = await world.run(calls.open(CALLER, "/f", APPEND));
    /** As the kernel does: at the end of what is at the path. */
    const append = async (text: string) => {
      const stat = await world.run(calls.getattr(CALLER, "/f"));
      return world.run(calls.write(CALLER, writer, stat.size, Buffer.from(text)));
    };
    await append("first");
    await elsewhere("move", "f", "h");
    await elsewhere("write", "f");
    await world.run(calls.truncate(CALLER, "/f", size));
    const other = await read("/f", await open("/f"));
    await append("second");
    await append("third");
    await world.run(calls.release(writer));
    expect(await read("/h", await open("/h"))).toBe(`${one}firstsecondthird`);
    expect(await read("/f", await open("/f"))).toBe(other);
  },
);
