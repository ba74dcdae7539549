/** Mounts of a device are told from others at the same place. Whatever touches the folder is a child process. */

import { spawn } from "node:child_process";
import { closeSync, mkdtempSync, openSync, realpathSync, rmdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { detach } from "../../src/daemon/detach.ts";
import { detachDevice } from "../../src/daemon/detach-mounts.ts";
import { mountAt, readMountTable } from "../../src/daemon/mount-table.ts";
import { SILENT } from "../../src/lib/log.ts";
import { finished } from "../support/child.ts";

const isRoot = process.getuid?.() === 0;

function openDevice(): number {
  return openSync("/dev/fuse", "r+");
}

async function mountFrom(device: number, folder: string): Promise<void> {
  const options = "fd=3,rootmode=40000,user_id=0,group_id=0";
  const child = spawn("mount", ["-i", "-t", "fuse.wsfs", "-o", options, "wsfs", folder], {
    stdio: ["ignore", "pipe", "pipe", device],
    timeout: 20_000,
  });
  expect(await finished(child)).toMatchObject({ code: 0, stderr: "" });
}

const isMounted = (folder: string) => mountAt(readMountTable(), folder) !== undefined;

test.skipIf(!isRoot)("what was mounted from a device is taken off, and not what took its place", async () => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "wsfs-detach-")));
  const [first, second] = [openDevice(), openDevice()];
  try {
    await mountFrom(first, folder);
    await detach(folder);
    await mountFrom(second, folder);
    await detachDevice(first, folder, SILENT);
    expect(isMounted(folder)).toBe(true);
    await detachDevice(second, folder, SILENT);
    expect(isMounted(folder)).toBe(false);
  } finally {
    if (isMounted(folder)) await detach(folder);
    for (const device of [first, second]) closeSync(device);
    rmdirSync(folder);
  }
});
