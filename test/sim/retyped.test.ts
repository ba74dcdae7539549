/** Somebody makes a symlink of a file by its attributes alone: its head stays what it was, and what is written here has no place in it. */
import { expect, test } from "vitest";
import { begin } from "./support/one-world.ts";
import { bytesOf, runProgram } from "./support/programs.ts";

const NEWS = bytesOf("news", 40);

/** Not sent before it is heard what was done elsewhere. */
async function retyped(isOpen: boolean) {
  const it = await begin(true, {}, { settings: { debounceMs: 20_000, maximumAgeMs: 60_000 } });
  const { world, calls } = it;
  await it.save("a");
  await it.drain();
  const { items } = await world.run(world.outside.listFolder(world.workspace.root));
  const id = items.find(({ name }) => name === "a")?.id ?? "";
  const fd = isOpen ? await world.run(calls().open("a", { write: true })) : undefined;
  if (fd === undefined) await world.run(runProgram(calls(), { do: "save", path: "a", size: NEWS.length }, "news"));
  else await world.run(calls().write(fd, 0, NEWS));
  await world.run(world.outside.patchNode(id, { attributes: { type: "symlink", target: "elsewhere" } }));
  await world.clock.advance(5_000);
  return { it, fd };
}

for (const isOpen of [false, true]) {
  test(`what was written here ${isOpen ? "by who has it open still" : "and not sent yet"} is kept beside it`, async () => {
    const { it, fd } = await retyped(isOpen);
    const { world, calls } = it;
    if (fd !== undefined) {
      await world.run(calls().write(fd, NEWS.length, NEWS));
      await world.run(calls().close(fd));
    }
    await world.clock.advance(90_000);
    await it.drain();
    world.check();
    expect(await world.run(calls().readlink("a"))).toBe("elsewhere");
    const [copy, ...more] = (await it.names()).filter((name) => name !== "a");
    expect([copy, more]).toEqual([expect.stringContaining("(conflict, "), []]);
    expect(await it.content(copy ?? "")).toBe((fd === undefined ? NEWS : Buffer.concat([NEWS, NEWS])).toString());
  });
}
