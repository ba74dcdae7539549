/**
 * A request that is a row already and waits for its turn to go out: whatever happens meanwhile to its file, the mount
 * or the network, it takes effect once or not at all, and what is there in the end is what was saved last.
 */
import { expect, test } from "vitest";
import { begin } from "./support/one-world.ts";
import { bytesOf } from "./support/programs.ts";

type It = Awaited<ReturnType<typeof begin>>;

/** One request at a time may be out: that of the root's time is, for seconds; those of `a` and `b` are rows, and wait. */
async function waiting(): Promise<It> {
  const it = await begin(true, {}, { settings: { concurrency: 1 } });
  await it.world.clock.advance(5_000);
  it.mount.weather.latencyMs = 30_000;
  await it.save("a");
  await it.save("b");
  const requested = () =>
    it
      .metadata()
      .attempts.open()
      .flatMap(({ request }) => ("name" in request ? request.name : []));
  await it.until(() => ["a", "b"].every((name) => requested().includes(name)));
  it.mount.weather.latencyMs = 0;
  expect(it.asked.filter((line) => line.startsWith("POST"))).toEqual([]);
  return it;
}

/** What happens, and by name what was saved last under it. */
const CASES: Readonly<Record<string, readonly [(it: It) => Promise<unknown>, Readonly<Record<string, string>>]>> = {
  "its file is left alone": [async () => {}, { a: "a", b: "b" }],
  "its file is saved anew": [(it) => it.save("b", "new"), { a: "a", b: "new" }],
  "its file is removed": [(it) => it.unlink("b"), { a: "a" }],
  "its file is renamed": [(it) => it.rename("b", "c"), { a: "a", c: "b" }],
  "its file takes the name of the one before": [(it) => it.rename("b", "a"), { a: "b" }],
  "the daemon dies": [(it) => it.again("crash"), { a: "a", b: "b" }],
  "the mount ends and comes back": [(it) => it.again("remount"), { a: "a", b: "b" }],
  "the gateway goes away for a minute": [
    async (it) => {
      it.mount.weather.isOffline = true;
      await it.world.clock.advance(60_000);
      it.mount.weather.isOffline = false;
    },
    { a: "a", b: "b" },
  ],
};

test.each(Object.entries(CASES))("%s", async (_, [happens, saved]) => {
  const it = await waiting();
  await happens(it);
  await it.ends(Object.keys(saved));
  for (const [name, label] of Object.entries(saved)) {
    expect(await it.content(name)).toBe(bytesOf(label, 40).toString("latin1"));
  }
  const made = it.asked.filter((line) => /^POST .* 201$/.test(line));
  expect(made).toEqual([...new Set(made)]);
});

test("while the gateway asks for a pause, who has the next turn does not go out", async () => {
  const it = await waiting();
  let asked = 0;
  it.rules.choose = ({ method }) => {
    if (method !== "POST") return undefined;
    asked += 1;
    return "throttled";
  };
  await it.save("c");
  await it.until(() => asked > 0, 120_000);
  expect(asked).toBe(1);
  it.rules.choose = () => undefined;
  await it.ends(["a", "b", "c"]);
});
