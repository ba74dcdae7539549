/**
 * Power loss sets rows back to their last sync: requests that were carried out since, and contents that wait to be
 * sent.
 */
import { describe, expect, test } from "vitest";
import { begin, there } from "./support/one-world.ts";
import { withPower } from "./support/power.ts";
import { bytesOf, textOf } from "./support/programs.ts";

describe("after a request was carried out", () => {
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
      const it = await begin({}, power.options);
      await before?.(it);
      await it.drain();
      power.sync(it.mount);
      await sent(it);
      await it.untilSent();
      power.lose(it.mount);
      it.mount.weather.isOffline = true;
      await it.world.run(it.mount.start());
      await after(it);
      await it.world.clock.advance(offlineMs);
      it.mount.weather.isOffline = false;
      await it.ends(ends);
      if (ends[0] === "a") expect(await it.content("a")).toBe(textOf("second"));
    },
  );
});

describe("while contents wait to be sent", () => {
  const TIMEOUT = { timeout: 120_000 };

  const HOUR = 3_600_000;

  type It = Awaited<ReturnType<typeof begin>>;

  const REASONS: readonly { readonly why: string; readonly begin: (it: It) => void; readonly end: (it: It) => void }[] =
    [
      {
        why: "the gateway is gone",
        begin: ({ mount }) => {
          mount.weather.isOffline = true;
        },
        end: ({ mount }) => {
          mount.weather.isOffline = false;
        },
      },
      {
        why: "no token is good",
        begin: ({ mount }) => {
          mount.weather.refusal = 401;
        },
        end: ({ mount }) => {
          mount.weather.refusal = undefined;
        },
      },
    ];

  test.each(REASONS)("$why, and the power goes: the content saved before that is sent", TIMEOUT, async (reason) => {
    const power = withPower();
    const it = await begin({}, power.options);
    const { world, mount } = it;
    await it.save("a");
    await it.drain();
    power.sync(mount);
    reason.begin(it);
    await world.clock.advance(5_000);
    const fd = await world.run(it.calls().open("a", { write: true, truncate: true }));
    await world.run(it.calls().write(fd, 0, bytesOf("second", 60)));
    await world.run(it.calls().close(fd));
    await world.clock.advance(60_000);
    power.lose(mount);
    await world.run(mount.start());
    expect(await it.content("a")).toBe(textOf("second", 60));
    reason.end(it);
    await it.ends(["a"]);
    expect(await it.content("a")).toBe(textOf("second", 60));
    expect([...(await there(world)).keys()]).toEqual(["a"]);
  });

  test("one snapshot of each content is taken, however long it waits, and sent as it was taken", TIMEOUT, async () => {
    const it = await begin();
    const { world, mount } = it;
    await it.names();
    mount.weather.isOffline = true;
    await world.clock.advance(5_000);
    for (const name of ["a", "b", "c"]) await it.save(name);
    await world.clock.advance(60_000);
    const generations = () =>
      mount.process?.database.prepare("SELECT id FROM generation ORDER BY id").pluck().all() as number[];
    const taken = generations();
    expect(taken).toHaveLength(3);
    await world.clock.advance(HOUR);
    expect(generations()).toEqual(taken);
    // Saved again, a snapshot is taken again, and the one before goes.
    await it.save("a", "again");
    await world.clock.advance(60_000);
    const now = generations();
    expect([now.length, now.filter((id) => taken.includes(id)).length]).toEqual([3, 2]);
    mount.weather.isOffline = false;
    await it.ends(["a", "b", "c"]);
    expect(generations()).toEqual([]);
  });
});
