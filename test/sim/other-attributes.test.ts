/** Extended attributes that programs on a mount could not have set: the gateway takes any name. And too many of them. */
import { expect, test } from "vitest";
import { ATTRIBUTES_BYTES_MAX } from "../../src/contract/attributes.ts";
import { begin } from "./support/one-world.ts";

const NAMES = ["tag", "user.", "security.capability", "user.two\0names", `user.${"ä".repeat(126)}`];

test("those that no program can ask for are not listed, and stay what they are at the gateway", async () => {
  const it = await begin(true);
  const { outside, workspace, clock } = it.world;
  await it.save("a");
  await it.drain();
  const node = async () => {
    const [first] = (await it.world.run(outside.listFolder(workspace.root))).items;
    if (first === undefined) throw new Error("a");
    return first;
  };
  const theirs = Object.fromEntries(
    ["user.note", `user.${"ä".repeat(125)}`, ...NAMES].map((name) => [name, "dGhlaXJz"]),
  );
  await it.world.run(outside.patchNode((await node()).id, { attributes: { xattrs: theirs } }));
  await clock.advance(5_000);
  expect(await it.world.run(it.calls().listxattr("a"))).toEqual(["user.note", `user.${"ä".repeat(125)}`]);
  expect(await it.world.run(it.calls().getxattr("a", "user.note"))).toBe("theirs");
  await it.world.run(it.calls().setxattr("a", "user.ours", "ours"));
  await it.drain();
  expect((await node()).attributes.xattrs).toEqual({ ...theirs, "user.ours": "b3Vycw==" });
});

test("more than the gateway takes is refused by setxattr, and nothing is parked; a node filled elsewhere stays writable", async () => {
  const it = await begin(true);
  const { outside, workspace, clock } = it.world;
  await it.save("a");
  await it.drain();
  const node = async () => (await it.world.run(outside.listFolder(workspace.root))).items[0];
  const set = async (name: string, bytes: number) => {
    try {
      await it.world.run(it.calls().setxattr("a", `user.${name}`, "x".repeat(bytes)));
      return "set";
    } catch (error) {
      return Object(error).code;
    }
  };
  const results: unknown[] = [];
  for (const name of ["a", "b", "c", "d", "e"]) results.push(await set(name, 12_000));
  expect(results).toEqual(["set", "set", "set", "set", "ENOSPC"]);
  // In the place of another there is room.
  expect(await set("a", 11_000)).toBe("set");
  await it.world.run(it.calls().chmod("a", 0o600));
  await it.drain();
  const names = ["user.a", "user.b", "user.c", "user.d"];
  expect(Object.keys((await node())?.attributes.xattrs ?? {})).toEqual(names);

  const { id = "", attributes } = (await node()) ?? {};
  const rest = ATTRIBUTES_BYTES_MAX - JSON.stringify({ xattrs: attributes?.xattrs, note: "" }).length;
  await it.world.run(outside.patchNode(id, { attributes: { note: "x".repeat(rest) } }));
  await clock.advance(5_000);
  expect([await set("f", 1), await set("b", 12_001)]).toEqual(["ENOSPC", "ENOSPC"]);
  await it.save("a");
  await it.world.run(it.calls().chmod("a", 0o640));
  await it.world.run(it.calls().utimens("a", 1_000_000));
  await it.drain();
  expect(it.mount.process?.engine.status().parked).toBe(0);
  expect((await node())?.attributes).toMatchObject({ mode: 0o640, note: "x".repeat(rest) });
});
