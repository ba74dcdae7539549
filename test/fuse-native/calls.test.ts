/** Calls of libfuse on a file system in memory: what becomes of files removed while they are open, and what is forgotten. */
import { describe, expect, it } from "vitest";
import { FsError } from "../../src/engine/api/index.ts";
import { createCalls } from "../../src/fuse-native/calls.ts";
import { createPaths } from "../../src/fuse-native/paths.ts";
import { kernelNodeId } from "../../src/metadata/ids.ts";
import { createMemoryFileSystem } from "../fuse/memory-file-system.ts";

const caller = { uid: 0, gid: 0, pid: 0, signal: new AbortController().signal };
const hiddenName = (counter: number) => `.fuse_hidden00000007${counter.toString(16).padStart(8, "0")}`;

function mounted() {
  const fileSystem = createMemoryFileSystem();
  const paths = createPaths(fileSystem);
  const calls = createCalls(fileSystem, paths);
  const put = async (path: string, text: string) => {
    const number = await calls.create(caller, path, 0o644);
    await calls.write(caller, number, 0, Buffer.from(text));
    await calls.release(number);
  };
  const get = async (path: string, number: number) =>
    Buffer.from(await calls.read(caller, path, number, 0, 99)).toString();
  const names = async (path: string) =>
    (await calls.readdir(caller, path)).map(({ name }) => name).filter((name) => !/^\.\.?$/.test(name));
  const known = () => [...fileSystem.counts].filter(([kernelNodeId, count]) => kernelNodeId !== 1 && count !== 0);
  return { fileSystem, paths, calls, put, get, names, known };
}

const fails = (code: string) => (error: unknown) => error instanceof FsError && error.code === code;

describe("a file that libfuse hides, since it is open", () => {
  it("loses its name at once, and can be used until it is closed", async () => {
    const { calls, put, get, names } = mounted();
    await calls.mkdir(caller, "/d", 0o755);
    await put("/d/f", "content");
    const number = await calls.open(caller, "/d/f", 2);
    const hidden = `/d/${hiddenName(1)}`;
    await calls.rename(caller, "/d/f", hidden);
    expect(await names("/d")).toEqual([]);
    await expect(calls.getattr(caller, "/d/f")).rejects.toSatisfy(fails("ENOENT"));
    expect(await get(hidden, number)).toBe("content");
    await calls.truncate(caller, hidden, 4);
    expect(await calls.getattr(caller, hidden)).toMatchObject({ size: 4, links: 0 });
    // In two steps: the name is free in between.
    await put("/d/g", "another");
    await calls.rename(caller, "/d/g", "/d/f");
    expect(await names("/d")).toEqual(["f"]);
    await calls.unlink(caller, "/d/f");
    await expect(calls.rmdir(caller, "/d")).rejects.toSatisfy(fails("ENOTEMPTY"));
    await calls.release(number);
    await calls.unlink(caller, hidden);
    await expect(calls.getattr(caller, hidden)).rejects.toSatisfy(fails("ENOENT"));
    await calls.rmdir(caller, "/d");
  });

  it("is hidden too where others changed or moved what its path led to", async () => {
    const { calls, put, names, fileSystem } = mounted();
    await calls.mkdir(caller, "/d", 0o755);
    await put("/d/f", "one");
    const number = await calls.open(caller, "/d/f", 0);
    const plain = { noReplace: false, exchange: false };
    await put("/new", "two");
    const { kernelNodeId: folder = kernelNodeId(0) } = await fileSystem.lookup(caller, kernelNodeId(1), "d");
    await fileSystem.rename(caller, { parent: kernelNodeId(1), name: "new" }, { parent: folder, name: "f" }, plain);
    await calls.rename(caller, "/d", "/e");
    await calls.rename(caller, "/e/f", `/e/${hiddenName(1)}`);
    expect(await names("/e")).toEqual([]);
    await calls.release(number);
    await calls.unlink(caller, `/e/${hiddenName(1)}`);
    expect(await names("/e")).toEqual([]);
  });

  it("is hidden too after many that could not be", async () => {
    const { calls, put, paths, names, fileSystem } = mounted();
    await calls.mkdir(caller, "/d", 0o755);
    await put("/d/f", "x");
    const number = await calls.open(caller, "/d/f", 0);
    const { lookup } = fileSystem;
    fileSystem.lookup = () => Promise.reject(new FsError("EIO", "no answer"));
    paths.forgetFolders();
    for (let i = 1; i <= 20; i += 1) {
      await expect(calls.rename(caller, "/d/f", `/d/${hiddenName(i)}`)).rejects.toSatisfy(fails("EIO"));
    }
    fileSystem.lookup = lookup;
    await calls.rename(caller, "/d/f", `/d/${hiddenName(21)}`);
    expect(await names("/d")).toEqual([]);
    await calls.release(number);
  });

  it("is nobody's once libfuse was told that it could not be hidden, and it loses its name after all", async () => {
    const { calls, put, paths, names, known, fileSystem } = mounted();
    await calls.mkdir(caller, "/d", 0o755);
    await put("/d/f", "x");
    const number = await calls.open(caller, "/d/f", 0);
    const deadline = new AbortController();
    const { unlink } = fileSystem;
    fileSystem.unlink = (...args) => {
      deadline.abort();
      return unlink(...args);
    };
    await calls.rename({ ...caller, signal: deadline.signal }, "/d/f", `/d/${hiddenName(1)}`);
    expect(await names("/d")).toEqual([]);
    await calls.release(number);
    await calls.rmdir(caller, "/d");
    paths.forgetFolders();
    expect(known()).toEqual([]);
  });

  it("is told from a file that somebody calls so", async () => {
    const { calls, put, names } = mounted();
    await put("/closed", "kept");
    await calls.rename(caller, "/closed", `/${hiddenName(1)}`);
    await put("/open", "kept");
    const number = await calls.open(caller, "/open", 0);
    await calls.rename(caller, "/open", `/${hiddenName(0x50)}`);
    await calls.release(number);
    expect(await names("/")).toEqual([hiddenName(1), hiddenName(0x50)]);
  });
});

it("gives back every answer that named something, once nothing is done with it any more", async () => {
  const { calls, put, paths, known, fileSystem } = mounted();
  await calls.mkdir(caller, "/a", 0o755);
  await calls.mkdir(caller, "/a/b", 0o755);
  await put("/a/b/f", "x");
  await calls.symlink(caller, "f", "/a/b/l");
  await calls.link(caller, "/a/b/f", "/a/g");
  await calls.getattr(caller, "/a/b/f");
  await expect(calls.getattr(caller, "/a/none/f")).rejects.toSatisfy(fails("ENOENT"));
  await expect(calls.getattr(caller, "/a/b/f/none")).rejects.toSatisfy((error) => error instanceof FsError);
  const number = await calls.open(caller, "/a/g", 0);
  await calls.rename(caller, "/a/b", "/c");
  expect(await calls.readlink(caller, "/c/l")).toBe("f");
  expect(known().length).toBeGreaterThan(0);
  await calls.release(number);
  paths.forgetFolders();
  expect(known()).toEqual([]);
  expect(fileSystem.handles.size).toBe(0);
});

it("a folder's path leads to another folder once somebody else moved it", async () => {
  const { calls, put, paths, names, fileSystem } = mounted();
  await calls.mkdir(caller, "/a", 0o755);
  await put("/a/f", "x");
  expect(await names("/a")).toEqual(["f"]);
  const elsewhere = { noReplace: false, exchange: false };
  await fileSystem.rename(
    caller,
    { parent: kernelNodeId(1), name: "a" },
    { parent: kernelNodeId(1), name: "b" },
    elsewhere,
  );
  paths.forgetFolders();
  await expect(calls.getattr(caller, "/a/f")).rejects.toSatisfy(fails("ENOENT"));
  expect(await names("/b")).toEqual(["f"]);
});

it("a name whose bytes nobody knows names nothing", async () => {
  const { calls, fileSystem, names, known } = mounted();
  const name = "a\ufffd";
  const flags = { read: true, write: true, append: false, truncate: false, exclusive: true };
  const { handle, kernelNodeId: made } = await fileSystem.create(caller, kernelNodeId(1), name, 0o644, flags);
  await fileSystem.release(handle);
  fileSystem.forget([{ kernelNodeId: made, count: 1 }]);
  const all: (() => Promise<unknown>)[] = [
    () => calls.getattr(caller, `/${name}`),
    () => calls.open(caller, `/${name}`, 0),
    () => calls.open(caller, `/${name}`, 1),
    () => calls.create(caller, `/${name}`, 0o644),
    () => calls.truncate(caller, `/${name}`, 0),
    () => calls.chmod(caller, `/${name}`, 0),
    () => calls.mkdir(caller, `/${name}/d`, 0o755),
    async () => calls.symlink(caller, name, "/l"),
    () => calls.rename(caller, `/${name}`, "/b"),
    () => calls.link(caller, `/${name}`, "/b"),
    () => calls.rmdir(caller, `/${name}`),
    () => calls.unlink(caller, `/${name}`),
    () => calls.setxattr(caller, "/", `user.${name}`, Buffer.from("x"), 0),
    () => calls.getxattr(caller, "/", `user.${name}`),
    () => calls.removexattr(caller, "/", `user.${name}`),
  ];
  for (const action of all) await expect(action()).rejects.toSatisfy(fails("EILSEQ"));
  expect(await names("/")).toEqual([name]);
  expect(known()).toEqual([]);
});

it("what a read opens after its file was closed is closed again", async () => {
  const { calls, put, known, fileSystem, paths } = mounted();
  await put("/f", "one");
  const number = await calls.open(caller, "/f", 0);
  await put("/new", "two");
  await fileSystem.rename(
    caller,
    { parent: kernelNodeId(1), name: "new" },
    { parent: kernelNodeId(1), name: "f" },
    { noReplace: false, exchange: false },
  );
  Object.assign(fileSystem, { changes: fileSystem.changes + 1 });
  const { open } = fileSystem;
  fileSystem.open = async (...parameters) => {
    const opened = await open(...parameters);
    await calls.release(number);
    return opened;
  };
  await expect(calls.read(caller, "/f", number, 0, 9)).rejects.toSatisfy(fails("EBADF"));
  paths.forgetFolders();
  expect(fileSystem.handles.size).toBe(0);
  expect(known()).toEqual([]);
});
