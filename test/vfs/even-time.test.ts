/** The time of the rows goes on evenly whoever sets the clock, for all daemons of one boot of the machine. */
import { expect, test } from "vitest";
import { openDatabase } from "../../src/metadata/database.ts";
import { createMetadata } from "../../src/metadata/metadata.ts";
import { createEvenTime } from "../../src/vfs/even-time.ts";
import { parseRequest } from "../../src/vfs/request.ts";
import { createMemoryFiles } from "../support/memory-files.ts";
import { createVirtualClock } from "../support/virtual-clock.ts";

const HOUR = 3_600_000;

function machine() {
  const clock = createVirtualClock();
  const metadata = createMetadata(openDatabase(":memory:"), parseRequest);
  const files = createMemoryFiles({ now: () => ({ seconds: 0, nanoseconds: 0 }) });
  const start = (boot: string) => {
    const time = createEvenTime({ ...clock, files }, metadata, boot);
    time.keep();
    return time.runtime;
  };
  return { clock, metadata, start };
}

test.each([HOUR, -HOUR])(
  "the clock is set by %i ms: it goes on evenly, what is shown follows the clock",
  async (by) => {
    const { clock, start } = machine();
    const runtime = start("boot");
    const begun = clock.now();
    expect(runtime.now()).toBe(begun);
    await clock.advance(1_500.5);
    clock.jump(by);
    expect([runtime.now(), runtime.wallClock()]).toEqual([begun + 1_500, begun + 1_500 + by]);
  },
);

test.each([HOUR, -HOUR])("set by %i ms while no daemon was there: the next one goes on with it", async (by) => {
  const { clock, start } = machine();
  const begun = start("boot").now();
  clock.jump(by);
  await clock.advance(1_000);
  expect(start("boot").now()).toBe(begun + 1_000);
});

test("after another boot it is the wall clock's again, and no row is later than that", async () => {
  const { clock, metadata, start } = machine();
  const begun = start("boot").now();
  const row = metadata.transaction(() => {
    metadata.rereads.add("node");
    const [reread] = metadata.rereads.due(begun, 1);
    if (reread !== undefined) metadata.rereads.missing(reread, begun, begun);
    return reread;
  });
  clock.jump(-HOUR);
  const runtime = start("another boot");
  expect(runtime.now()).toBe(begun - HOUR);
  expect(metadata.rereads.missingSince("node")).toBe(begun - HOUR);
  expect(metadata.rereads.due(begun - HOUR, 1)).toEqual([row]);
});
