/** What cannot be sent is cut all the same: saved hours before the machine goes down, it is no half-written file. */
import { expect, test } from "vitest";
import { begin, there } from "./support/one-world.ts";
import { withPower } from "./support/power.ts";
import { bytesOf } from "./support/programs.ts";

const TIMEOUT = { timeout: 120_000 };
const HOUR = 3_600_000;

type It = Awaited<ReturnType<typeof begin>>;

const REASONS: readonly { readonly why: string; readonly begin: (it: It) => void; readonly end: (it: It) => void }[] = [
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

test.each(REASONS)("$why, and the power goes: what was saved before that is what is sent", TIMEOUT, async (reason) => {
  const power = withPower();
  const it = await begin(true, {}, power.options);
  const { world, mount } = it;
  await it.save("a");
  await it.drain();
  await world.run(mount.process?.engine.context.syncRows() ?? Promise.reject());
  reason.begin(it);
  await world.clock.advance(5_000);
  const fd = await world.run(it.calls().open("a", { write: true, truncate: true }));
  await world.run(it.calls().write(fd, 0, bytesOf("second", 60)));
  await world.run(it.calls().close(fd));
  await world.clock.advance(60_000);
  power.lose(mount);
  await world.run(mount.start());
  expect(await it.content("a")).toBe(bytesOf("second", 60).toString("latin1"));
  reason.end(it);
  await it.ends(["a"]);
  expect(await it.content("a")).toBe(bytesOf("second", 60).toString("latin1"));
  expect([...(await there(world)).keys()]).toEqual(["a"]);
});

test("each content is cut once, however long it waits, and sent as it was cut", TIMEOUT, async () => {
  const it = await begin(true);
  const { world, mount } = it;
  await it.names();
  mount.weather.isOffline = true;
  await world.clock.advance(5_000);
  for (const name of ["a", "b", "c"]) await it.save(name);
  await world.clock.advance(60_000);
  const generations = () =>
    mount.process?.database.prepare("SELECT id FROM generation ORDER BY id").pluck().all() as number[];
  const cut = generations();
  expect(cut).toHaveLength(3);
  await world.clock.advance(HOUR);
  expect(generations()).toEqual(cut);
  // Saved again, it is cut again, and what was cut before goes.
  await it.save("a", "again");
  await world.clock.advance(60_000);
  const now = generations();
  expect([now.length, now.filter((id) => cut.includes(id)).length]).toEqual([3, 2]);
  mount.weather.isOffline = false;
  await it.ends(["a", "b", "c"]);
  expect(generations()).toEqual([]);
});
