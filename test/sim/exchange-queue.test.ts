/** Two names that are to be exchanged: what the queue says of each, and that trying either again means both. */
import { expect, test } from "vitest";
import type { QueueItem } from "../../src/vfs/engine.ts";
import { begin } from "./support/one-world.ts";

test("while the exchange is not answered, both say so; retried by either name, it goes at once", {
  timeout: 120_000,
}, async () => {
  for (const retried of ["/a", "/b"]) {
    const it = await begin(true);
    const { world, mount, rules } = it;
    await it.save("a");
    await it.save("b");
    await it.drain();
    const engine = () => {
      if (mount.process === undefined) throw new Error("the mount is down");
      return mount.process.engine;
    };
    async function items(): Promise<QueueItem[]> {
      const all: QueueItem[] = [];
      for await (const some of engine().queue(100)) all.push(...some);
      return all.filter(({ path }) => path !== "/").sort((x, y) => (x.path < y.path ? -1 : 1));
    }
    const queue = () => world.run(items());
    let isFailing = true;
    let asked = 0;
    rules.choose = ({ path }) => {
      if (!path.endsWith("/exchange")) return undefined;
      asked += 1;
      return isFailing ? "failed" : undefined;
    };
    await world.run(it.calls().exchange("a", "b"));
    await world.clock.advance(200_000);
    const failure = /tried \d+ times: exchangeNodes: 500 .* \(in \d+\.\d s\)$/;
    const [one, other] = (await queue()).sort((x, y) => x.why.length - y.why.length);
    expect([one?.what, other?.what, one?.state, other?.state]).toEqual(["move", "move", "retry", "retry"]);
    expect(one?.why).toMatch(failure);
    expect(other?.why).toBe(`exchanged with ${one?.path} by one request: ${one?.why}`);
    isFailing = false;
    const tries = asked;
    expect(await world.run(engine().retry([retried]))).toEqual({ retried: 1, unknown: [] });
    await world.clock.advance(500);
    expect(asked).toBe(tries + 1);
    await world.clock.advance(1_000);
    expect(await queue()).toEqual([]);
  }
});
