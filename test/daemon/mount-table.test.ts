import { expect, it } from "vitest";
import { isOurs, mountAt, parseMountTable } from "../../src/daemon/mount-table.ts";

const TABLE = `22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/root rw,discard
30 22 0:26 / /run rw,nosuid shared:5 master:2 - tmpfs tmpfs rw,size=10k
41 22 0:39 / /home/a/My\\040Files\\134x rw,nosuid,nodev - fuse.wsfs main rw,user_id=0,group_id=0
42 22 0:40 / /mnt/b rw - fuse.wsfs one rw
43 42 0:41 / /mnt/b rw - tmpfs two rw
not a line of it
`;

it("reads number, place, type, source and options of each line, with or without optional fields", () => {
  const table = parseMountTable(TABLE);
  expect(table.map(({ id }) => id)).toEqual([22, 30, 41, 42, 43]);
  expect(mountAt(table, "/home/a/My Files\\x")).toEqual({
    id: 41,
    connection: 39,
    mountpoint: "/home/a/My Files\\x",
    type: "fuse.wsfs",
    source: "main",
    superOptions: "rw,user_id=0,group_id=0",
  });
  expect(mountAt(table, "/run")?.type).toBe("tmpfs");
});

it("of mounts over each other shows the one on top", () => {
  const table = parseMountTable(TABLE);
  expect(mountAt(table, "/mnt/b")?.source).toBe("two");
  expect(isOurs(mountAt(table, "/mnt/b"))).toBe(false);
  expect(isOurs(mountAt(table, "/mnt"))).toBe(false);
});
