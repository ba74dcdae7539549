/**
 * Power loss after a request was carried out: rows are as they were synced last, which may be before
 * its answer. What the gateway then shows is ours, and no conflict with what programs do offline.
 */
import { expect, test } from "vitest";
import { begin } from "./support/one-world.ts";
import { withPower } from "./support/power.ts";
import { bytesOf } from "./support/programs.ts";

type It = Awaited<ReturnType<typeof begin>>;

interface Case {
  readonly what: string;
  /** All the gateway knows of before. */
  before?(it: It): Promise<unknown>;
  /** Sent and answered, then the power goes. */
  sent(it: It): Promise<unknown>;
  /** Without the gateway. */
  after(it: It): Promise<unknown>;
  readonly ends: readonly string[];
}

const CASES: readonly Case[] = [
  {
    what: "a new version",
    before: (it) => it.save("a"),
    sent: (it) => synced(it, "a", "first"),
    after: (it) => it.save("a", "second"),
    ends: ["a"],
  },
  {
    what: "a new file",
    sent: (it) => synced(it, "a", "first"),
    after: (it) => it.save("a", "second"),
    ends: ["a"],
  },
  {
    what: "a new folder",
    sent: (it) => it.world.run(it.calls().mkdir("d")),
    after: (it) => it.world.run(it.calls().rmdir("d")),
    ends: [],
  },
  {
    what: "a move",
    before: (it) => it.save("a"),
    sent: (it) => it.rename("a", "b"),
    after: (it) => it.rename("b", "c"),
    ends: ["c"],
  },
  {
    what: "a new file, which is removed",
    sent: (it) => synced(it, "a", "first"),
    after: (it) => it.unlink("a"),
    ends: [],
  },
];

async function synced(it: It, path: string, label: string): Promise<void> {
  await it.save(path, label);
  const fd = await it.world.run(it.calls().open(path, { write: true }));
  await it.world.run(it.calls().fsync(fd));
  await it.world.run(it.calls().close(fd));
}

test.each(CASES.flatMap((each) => [1_000, 900_000].map((offlineMs) => ({ ...each, offlineMs }))))(
  "$what is carried out, the power goes, and $offlineMs ms later its name is used again: no conflict",
  async ({ before, sent, after, ends, offlineMs }) => {
    const power = withPower();
    const it = await begin(true, {}, power.options);
    await before?.(it);
    await it.drain();
    await it.world.run(it.mount.process?.engine.context.syncRows() ?? Promise.reject());
    await sent(it);
    await it.until(() => it.metadata().nodes.counts().dirty === 0);
    power.lose(it.mount);
    it.mount.weather.isOffline = true;
    await it.world.run(it.mount.start());
    await after(it);
    await it.world.clock.advance(offlineMs);
    it.mount.weather.isOffline = false;
    await it.ends(ends);
    if (ends[0] === "a") expect(await it.content("a")).toBe(bytesOf("second", 40).toString("latin1"));
  },
);
