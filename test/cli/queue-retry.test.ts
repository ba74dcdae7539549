/** Which change a PATH of `wsfs queue retry` names: one on this machine, by whatever way it leads into the mount, or one of the queue's. */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { pathInMount } from "../../src/cli/queue-retry.ts";
import type { MountEntry } from "../../src/daemon/mount-table.ts";

let folder: string;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "wsfs-test-")));
});
afterEach(() => rmSync(folder, { recursive: true }));

test("a path leads into the mount by links as well, and is one of the queue's where it does not", () => {
  mkdirSync(join(folder, "disk"));
  // Not there: nothing of a mount is looked at.
  const mountpoint = join(folder, "disk/mount");
  const entry = { id: 1, connection: 7, type: "fuse.wsfs", source: "w", superOptions: "rw" };
  const mount: MountEntry = { ...entry, mountpoint };
  const copy: MountEntry = { ...entry, id: 2, mountpoint: join(folder, "copy") };
  const other: MountEntry = { ...entry, id: 3, connection: 8, mountpoint: join(folder, "other") };
  symlinkSync("disk/mount", join(folder, "work"));
  symlinkSync("loop", join(folder, "loop"));
  const asked = (path: string, from = folder) => pathInMount(path, mount, [mount, copy, other], from);
  for (const dir of [mountpoint, "disk/mount", "work", join(folder, "work"), "copy"]) {
    expect(asked(dir), dir).toBe("/");
    expect(asked(`${dir}/reports/../notes.txt`), dir).toBe("/notes.txt");
  }
  expect(asked("b", join(mountpoint, "a"))).toBe("/a/b");
  expect(asked("/notes.txt")).toBe("/notes.txt");
  expect(asked("notes.txt")).toBe("/notes.txt");
  expect(asked("other/x")).toBe("/other/x");
  expect(asked("loop/x")).toBe("/loop/x");
});
