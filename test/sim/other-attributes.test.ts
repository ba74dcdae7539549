/** Extended attributes that programs on a mount could not have set: the gateway takes any name. */
import { expect, test } from "vitest";
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
