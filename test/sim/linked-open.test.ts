/**
 * A file gets more names elsewhere while a program here has it open, with the nodes of its names told of in any order: it
 * is the same file before and after, to who has it open and to who looks it up.
 */
import { expect, test } from "vitest";
import { beginTwo, TURNS_MS } from "./support/two-world.ts";

const SIZE = 40;

/** Both mounts know `a`, which has one name so far. */
async function begin() {
  const it = await beginTwo();
  const { world, alpha, beta, run, drain, calls, nodes, rules } = it;
  await run(alpha, { do: "save", path: "a", size: SIZE }, "one");
  await drain(alpha);
  await world.clock.advance(TURNS_MS);
  const before = await world.run(calls(beta).stat("a"));
  expect(before.links).toBe(1);
  const a = (await nodes())[0]?.id ?? "?";
  return {
    ...it,
    before,
    stat: (name: string) => world.run(calls(beta).stat(name)),
    /** Each of the names arrives at the gateway only once the one before has been heard of. */
    async link(order: readonly string[]) {
      let arrived = 0;
      rules.choose = ({ method, path, body }) => {
        if (method === "GET") return undefined;
        const of = order.findIndex((name) =>
          name === "a" ? path.includes(a) : JSON.stringify(body ?? "").includes(`"${name}"`),
        );
        return of > arrived ? "failed" : undefined;
      };
      for (const to of order) if (to !== "a") await world.run(calls(alpha).link("a", to));
      for (; arrived < order.length; arrived += 1) await world.clock.advance(20_000);
      rules.choose = () => undefined;
      await drain(alpha);
      await world.clock.advance(5_000);
    },
  };
}

const ORDERS = [
  ["hl", "a"],
  ["a", "hl"],
  ["hl", "hm", "a"],
  ["hl", "a", "hm"],
  ["a", "hl", "hm"],
] as const;

test.each(ORDERS.map((order) => ({ what: order.join(", "), order })))(
  "linked elsewhere, told of as $what: who has it open has the file that is there by name",
  async ({ order }) => {
    const { world, beta, calls, before, stat, link, drain, labelOf } = await begin();
    const at = calls(beta);
    const fd = await world.run(at.open("a", {}));
    await link(order);
    const now = { inode: before.inode, links: order.length, size: before.size };
    expect(await world.run(at.fstat(fd))).toMatchObject(now);
    for (const name of order) expect(await stat(name)).toMatchObject(now);
    world.check();
    // What this mount appends by any of its names is read by who had it open before.
    for (const [index, name] of order.entries()) {
      const writer = await world.run(at.open(name, { write: true, append: true }));
      await world.run(at.write(writer, 0, Buffer.from("+")));
      await world.run(at.close(writer));
      const { size } = await world.run(at.fstat(fd));
      expect(size).toBe(before.size + index + 1);
      expect((await world.run(at.read(fd, size - 1, 10))).toString()).toBe("+");
    }
    await world.run(at.close(fd));
    await drain(beta);
    await world.clock.advance(2 * TURNS_MS);
    for (const mount of world.mounts) for (const name of order) expect(await labelOf(mount, name)).toBe("one");
    world.check();
  },
);
