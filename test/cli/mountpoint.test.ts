import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { checkMountpoint, findPlace } from "../../src/cli/mountpoint.ts";
import type { MountEntry } from "../../src/daemon/mount-table.ts";

let folder: string;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "wsfs-test-")));
});
afterEach(() => rmSync(folder, { recursive: true }));

function mounted(mountpoint: string, type = "fuse.wsfs"): MountEntry {
  return { id: 1, connection: 7, mountpoint, type, source: "w", superOptions: "rw" };
}

describe("what a folder on the command line is", () => {
  it("is a mount of ours when the table says so, without the mount being there to be asked", () => {
    const path = join(folder, "absent");
    for (const dir of [path, `${path}/`, `${path}/.`, `${path}/a/..`]) {
      expect(findPlace(dir, [mounted(path)]), dir).toMatchObject({ is: "ourMount", path, mount: { connection: 7 } });
    }
    expect(findPlace("absent", [mounted(path)], folder)).toMatchObject({ is: "ourMount", path });
    expect(findPlace(".", [mounted(path)], path)).toMatchObject({ is: "ourMount", path });
    expect(findPlace("..", [mounted(path)], join(path, "sub"))).toMatchObject({ is: "ourMount", path });
  });

  it("lies inside of one, or leads out of it, without a look into it", () => {
    const path = join(folder, "absent");
    expect(findPlace(`${path}/a/b`, [mounted(path)])).toMatchObject({ is: "insideOurMount", path: `${path}/a/b` });
    expect(findPlace("../..", [mounted(path)], join(path, "sub"))).toEqual({ is: "folder", path: folder });
  });

  it("is found through symbolic links, relative, absolute and of folders above", () => {
    const path = join(folder, "real/mount");
    mkdirSync(join(folder, "real"));
    symlinkSync("real/mount", join(folder, "relative"));
    symlinkSync(path, join(folder, "absolute"));
    symlinkSync("real", join(folder, "above"));
    for (const dir of ["relative", "absolute", "above/mount", "real/../above/./mount"]) {
      expect(findPlace(dir, [mounted(path)], folder), dir).toMatchObject({ is: "ourMount", path });
    }
    symlinkSync("loop", join(folder, "loop"));
    expect(() => findPlace("loop", [], folder)).toThrow("too many symbolic links");
  });

  it("is a folder, another file, or nothing", () => {
    writeFileSync(join(folder, "file"), "");
    mkdirSync(join(folder, "dir"));
    expect(findPlace("dir", [], folder)).toEqual({ is: "folder", path: join(folder, "dir") });
    expect(findPlace("file", [], folder)).toEqual({ is: "otherFile", path: join(folder, "file") });
    expect(findPlace("file/x", [], folder)).toEqual({ is: "nothing", path: join(folder, "file/x") });
    expect(findPlace("no/way", [], folder)).toEqual({ is: "nothing", path: join(folder, "no/way") });
    expect(findPlace("/", [], folder)).toEqual({ is: "folder", path: "/" });
  });
});

describe("a folder to mount on", () => {
  const refusal = (dir: string, table: MountEntry[] = []) => {
    const check = () => checkMountpoint(dir, findPlace(dir, table, folder), table);
    return expect(check, dir);
  };

  it("may be an empty folder", () => {
    mkdirSync(join(folder, "dir"));
    refusal("dir").not.toThrow();
  });

  it("may not be absent, a file, full, inside a mount, or another mount", () => {
    writeFileSync(join(folder, "file"), "");
    mkdirSync(join(folder, "dir"));
    refusal("absent").toThrow("absent is not there");
    refusal("file").toThrow("file is not a folder");
    refusal(folder).toThrow("is not empty (2 entries)");
    refusal("m/sub", [mounted(join(folder, "m"))]).toThrow(`lies inside the mount at ${folder}/m`);
    refusal("dir", [mounted(join(folder, "dir"), "tmpfs")]).toThrow("already a mount (of type tmpfs)");
  });
});
