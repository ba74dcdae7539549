/**
 * `durability remote`: who waits for what he wrote, and still has the file open, is not waited for, whatever somebody else
 * has done to it meanwhile. Both contents are there in the end. And nobody waits for ever.
 */
import { expect, test } from "vitest";
import type { Calls } from "./support/calls.ts";
import { begin, there } from "./support/one-world.ts";
import { bytesOf, sourceOf } from "./support/programs.ts";
import { hashOf } from "./support/tree.ts";

const LIMIT_MS = 10_000;
const STANDSTILL_MS = 60_000;
const SIZE = 40;
const OURS = bytesOf("ours", SIZE);
const THEIRS = bytesOf("theirs", SIZE);

const HOW: readonly {
  readonly how: string;
  /** What it has written before, and nobody has sent. */
  readonly before?: Buffer;
  run(calls: Calls, fd: number): Promise<void>;
}[] = [
  {
    how: "closes it",
    async run(calls, fd) {
      await calls.write(fd, 0, OURS);
      await calls.close(fd);
    },
  },
  {
    how: "syncs it",
    async run(calls, fd) {
      await calls.write(fd, 0, OURS);
      await calls.fsync(fd);
    },
  },
  {
    how: "has written to it, and closes another opening of it",
    before: bytesOf("before", SIZE),
    async run(calls) {
      const other = await calls.open("a", { write: true });
      await calls.write(other, 0, OURS);
      await calls.close(other);
    },
  },
];
const DONE = ["writes it", "removes it"] as const;

/** How it has ended by now. */
function endOf(work: Promise<void>): () => string {
  let end = "not yet";
  work.then(
    () => {
      end = "well";
    },
    (error: unknown) => {
      end = String(error);
    },
  );
  return () => end;
}

test.each(HOW.flatMap((one) => DONE.map((theirs) => ({ ...one, theirs }))))(
  "somebody $theirs; the program $how",
  async ({ run, theirs, before }) => {
    const it = await begin(true, {}, { settings: { durability: "remote" } });
    const { world, calls } = it;
    const { outside, workspace, clock } = world;
    await it.save("a");
    const [node] = (await world.run(outside.listFolder(workspace.root))).items;
    if (node === undefined) throw new Error("a");
    const fd = await world.run(calls().open("a", { write: true }));
    if (before !== undefined) await world.run(calls().write(fd, 0, before));
    await (theirs === "writes it"
      ? world.run(outside.writeContent(node.id, sourceOf(THEIRS)))
      : world.run(outside.deleteNode(node.id)));
    // It was heard of, and waits for what was written.
    await clock.advance(3_000);
    const ended = endOf(run(calls(), fd));
    await clock.advance(LIMIT_MS);
    expect(ended()).toBe("well");
    const contents = [...(await there(world)).values()].map(({ content }) => content).sort();
    expect(contents).toEqual([hashOf(OURS), ...(theirs === "writes it" ? [hashOf(THEIRS)] : [])].sort());
  },
);

test("what waits for a folder that does not get to the gateway is told so, and sent once that does", async () => {
  const it = await begin(true, {}, { settings: { durability: "remote" } });
  const { world, calls } = it;
  await it.names();
  it.rules.choose = ({ method, path }) => (method === "POST" && path === "/v1/nodes" ? "failed" : undefined);
  await world.run(calls().mkdir("d"));
  const fd = await world.run(calls().open("d/f", { write: true, create: true }));
  await world.run(calls().write(fd, 0, OURS));
  const ended = endOf(calls().close(fd));
  await world.clock.advance(STANDSTILL_MS - 1_000);
  expect(ended()).toBe("not yet");
  await world.clock.advance(2_000);
  expect(ended()).toMatch(/^CallError: EIO: .*the gateway does not get it: its folder has to be sent first$/);
  it.rules.choose = () => undefined;
  await it.ends(["d", "d/f"]);
});
