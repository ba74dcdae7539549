/** A file is saved again while what was saved before is being sent: that gives way to the newer content, but not each time. */
import { expect, test } from "vitest";
import { begin, there } from "./support/one-world.ts";
import { hashOf } from "./support/tree.ts";

/** So many uploads are not answered, for longer than a save is waited for. */
const SILENT_UPLOADS = 3;

test.each([
  ["stays open", false],
  ["is closed after the last save", true],
] as const)(
  "the file %s: an upload gives way to what is saved meanwhile, the third one goes on to its end",
  async (_, isClosed) => {
    const it = await begin(true);
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

test("what was cut while the file was open gives way to what its last writer leaves", async () => {
  const it = await begin(true);
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
