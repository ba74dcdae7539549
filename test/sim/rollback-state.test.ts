/**
 * The rows of the mount (its database) are lost, damaged, or older than what was done by them: no content that a program was
 * promised is lost, none is doubled, and mount and gateway agree in the end.
 */

import { describe, expect, test } from "vitest";
import { SqliteError } from "../../src/lib/sqlite/index.ts";
import { callsOf, type Damage, playDamage, rest } from "./support/damage-run.ts";
import type { Mount } from "./support/mount.ts";
import { withPower } from "./support/power.ts";
import { bytesOf, runProgram, sourceOf } from "./support/programs.ts";
import { readFile } from "./support/tree.ts";
import { createWorld, type World } from "./support/world.ts";

const SEED = Number(process.env.WSFS_SEED ?? 1);

const RUNS = Number(process.env.SIM_RUNS ?? 1);

const DAMAGES: readonly Damage[] = (["copy", "none", "behind"] as const).flatMap((rows) =>
  (["whole", "damaged", "gone"] as const).flatMap((list) =>
    [true, false].flatMap((isDrained) =>
      (["crash", "stop"] as const).map((ends): Damage => ({ rows, list, isDrained, ends })),
    ),
  ),
);

/** Rows that nothing says are old are found to be only by the list, and only after a crash. How it ended matters little else. */
const isPlayed = ({ rows, list, ends }: Damage) => (list === "whole" && rows !== "behind") || ends === "crash";

const isFound = ({ rows, list }: Damage) => rows !== "behind" || list === "whole";

describe.each(DAMAGES.filter(isPlayed).filter(isFound))(
  "rows: $rows, list: $list, drained: $isDrained, $ends",
  (damage) => {
    test("nothing is lost or doubled", async () => {
      for (let index = 0; index < RUNS; index += 1) {
        const seed = SEED * 1000 + index;
        expect(await playDamage(seed, damage), `seed ${seed}`).toEqual([]);
      }
    });
  },
);

test("bytes that were written where some were missing, after the copy was made, are not fetched over", async () => {
  const world = await createWorld({ seed: SEED, mounts: ["alpha"] });
  const [mount] = world.mounts;
  if (mount?.process === undefined) throw new Error("no mount");
  const origin = bytesOf("far", 300_000);
  await world.run(world.outside.upload(world.workspace.root, "far", sourceOf(origin)));
  await world.clock.advance(5_000);
  const { kernel } = mount.process;
  const handle = await world.run(kernel.open("far", { write: true }));
  mount.weather.isOffline = true;
  await world.run(kernel.write(handle, 0, Buffer.alloc(4096, "1")));
  const copy = mount.copyRows();
  await world.run(kernel.write(handle, 204_800, Buffer.alloc(4096, "2")));

  mount.crash();
  mount.replaceRows(copy, "a test took them away");
  mount.weather.isOffline = false;
  await world.run(mount.start());
  await rest(world, mount);
  const wanted = Buffer.from(origin);
  wanted.fill("1", 0, 4096).fill("2", 204_800, 208_896);
  expect((await world.run(readFile(callsOf(mount), "far"))).equals(wanted)).toBe(true);
});

test("power loss takes the end of the list, and later the rows are damaged: what the list lacks is not removed", async () => {
  const power = withPower();
  const world = await createWorld({ seed: SEED, mounts: ["alpha"], ...power.options });
  const [mount] = world.mounts;
  if (mount === undefined) throw new Error("no mount");
  const copy = mount.copyRows();
  await world.run(callsOf(mount).list(""));
  mount.weather.isOffline = true;
  const list = await mount.files().open("/state/staged", "r+");
  const { size } = await list.stat();
  await world.run(runProgram(callsOf(mount), { do: "save", path: "a", size: 50 }, "one"));
  power.lose(mount, { keepsRows: true });
  await (await mount.files().open("/state/staged", "r+")).truncate(size);
  await world.run(mount.start());
  mount.crash();
  mount.replaceRows(copy, "a test took them away");
  mount.weather.isOffline = false;
  await world.run(mount.start());
  await rest(world, mount);
  expect(await world.run(readFile(callsOf(mount), "a"))).toEqual(bytesOf("one", 50));
});

/** Replaced offline in a new file, so that rows from before do not know it; and the rows are taken away. */
async function replaced(how: "crash" | "power loss", meanwhile: (world: World) => Promise<unknown> = async () => {}) {
  const power = withPower();
  const world = await createWorld({ seed: SEED, mounts: ["alpha"], ...power.options });
  const [mount] = world.mounts;
  if (mount === undefined) throw new Error("no mount");
  await world.run(runProgram(callsOf(mount), { do: "save", path: "a", size: 50 }, "old"));
  await rest(world, mount);
  const copy = mount.copyRows();
  mount.weather.isOffline = true;
  await world.run(runProgram(callsOf(mount), { do: "replace", path: "a", size: 60 }, "new"));
  await meanwhile(world);
  if (how === "crash") mount.crash();
  else power.lose(mount, { keepsRows: true });
  mount.replaceRows(how === "crash" ? undefined : copy, "a test took them away");
  mount.weather.isOffline = false;
  return { world, mount };
}

/** Names with their contents; of a name for what was kept only that it is one. */
async function contentsIn(world: World, mount: Mount) {
  const names = await world.run(callsOf(mount).list(""));
  const contents = names.map(async (name) => {
    const content = await world.run(readFile(callsOf(mount), name));
    return [name.replace(/ \(recovered.*| \d+ \(recovered.*/, " (recovered)"), content.toString("latin1")] as const;
  });
  return Object.fromEntries(await Promise.all(contents));
}

const textOf = (label: string, size: number) => bytesOf(label, size).toString("latin1");

test("what is brought back goes over the version it was written over, and over no other", async () => {
  const theirs = "theirs";
  for (const isChanged of [false, true]) {
    const { world, mount } = await replaced("crash", async ({ outside, workspace, run }) => {
      if (!isChanged) return;
      const [node] = (await run(outside.listFolder(workspace.root))).items;
      const source = sourceOf(theirs);
      await run(outside.writeContent(node?.id ?? "", source));
    });
    await world.run(mount.start());
    await rest(world, mount);
    const news = textOf("new", 60);
    expect(await contentsIn(world, mount)).toEqual(isChanged ? { a: theirs, "a (recovered)": news } : { a: news });
  }
});

test("after power loss what is brought back goes over nothing, and what the list lacks is not removed", async () => {
  for (const isTold of [true, false]) {
    const { world, mount } = await replaced("power loss");
    if (!isTold) {
      const list = await mount.files().open("/state/staged", "r+");
      const lines = Buffer.alloc((await list.stat()).size);
      await list.read(lines, 0, lines.length, 0);
      await list.truncate(lines.indexOf("\n") + 1);
    }
    await world.run(mount.start());
    await rest(world, mount);
    const name = isTold ? "a (recovered)" : "file (recovered)";
    expect(await contentsIn(world, mount)).toEqual({ a: textOf("old", 50), [name]: textOf("new", 60) });
  }
});

test.each([
  { isSent: false, ends: { a: bytesOf("theirs", 40), "a (conflict)": bytesOf("late", 40) } },
  { isSent: true, ends: { a: bytesOf("theirs", 40) } },
])(
  "rows as they were when a program had written to what was changed elsewhere: it is kept, if it is yet to be sent (sent: $isSent)",
  async ({ isSent, ends }) => {
    const world = await createWorld({ seed: SEED, mounts: ["alpha"] });
    const [mount] = world.mounts;
    if (mount?.process === undefined) throw new Error("no mount");
    const { kernel } = mount.process;
    await world.run(runProgram(kernel, { do: "save", path: "a", size: 40 }, "old"));
    await rest(world, mount);
    const [node] = (await world.run(world.outside.listFolder(world.workspace.root))).items;
    const fd = await world.run(kernel.open("a", { write: true }));
    await world.run(world.outside.writeContent(node?.id ?? "", sourceOf(bytesOf("theirs", 40))));
    await world.clock.advance(3_000);
    await world.run(kernel.write(fd, 0, bytesOf("late", 40)));
    const copy = mount.copyRows();
    await world.run(kernel.close(fd));
    if (isSent) {
      await rest(world, mount);
      const copies = (await world.run(kernel.list(""))).filter((name) => name.includes("conflict"));
      for (const name of copies) await world.run(kernel.unlink(name));
      await rest(world, mount);
    }
    mount.crash();
    mount.replaceRows(copy, "a test took them away");
    await world.run(mount.start());
    await rest(world, mount);
    const shown = Object.entries(await contentsIn(world, mount)).map(([name, text]) => [
      name.replace(/ \(conflict, .*\)/, " (conflict)"),
      text,
    ]);
    const wanted = Object.entries(ends).map(([name, bytes]) => [name, bytes.toString("latin1")]);
    expect(Object.fromEntries(shown)).toEqual(Object.fromEntries(wanted));
    world.check();
  },
);

test("damage that the write-back loop meets is not counted as a mistake of one row", async () => {
  const world = await createWorld({ seed: SEED, mounts: ["alpha"] });
  const running = world.mounts[0]?.process;
  if (running === undefined) throw new Error("no mount");
  await world.run(runProgram(running.kernel, { do: "save", path: "a", size: 50 }, "one"));
  running.database.function("damaged", () => {
    throw new SqliteError("database disk image is malformed", "SQLITE_CORRUPT");
  });
  running.database.exec("CREATE TEMP TRIGGER damaged BEFORE INSERT ON main.attempt BEGIN SELECT damaged(); END");
  await world.clock.advance(60_000);
  expect(running.engine.status().paused).toContain("is damaged");
  expect(world.lines.filter((line) => line.includes("write-back of a node failed"))).toEqual([]);
});

test("once rows turn out to be damaged, changes are refused and nothing is sent", async () => {
  const told: unknown[] = [];
  const world = await createWorld({
    seed: SEED,
    mounts: ["alpha"],
    engine: () => ({ onDamage: (error) => void told.push(error) }),
  });
  const running = world.mounts[0]?.process;
  if (running === undefined) throw new Error("no mount");
  const { kernel, database, engine } = running;
  await world.run(runProgram(kernel, { do: "save", path: "a", size: 50 }, "one"));
  const before = world.position();
  // As SQLite says it of a page that is none.
  const damaged = () => {
    throw new SqliteError("database disk image is malformed", "SQLITE_CORRUPT");
  };
  database.function("damaged", damaged);
  database.exec("CREATE TEMP TRIGGER damaged BEFORE UPDATE ON main.inode BEGIN SELECT damaged(); END");
  await expect(world.run(runProgram(kernel, { do: "save", path: "a", size: 60 }, "two"))).rejects.toThrow("EIO");
  database.exec("DROP TRIGGER damaged");

  await expect(world.run(kernel.mkdir("d"))).rejects.toThrow("EIO");
  await expect(world.run(kernel.unlink("a"))).rejects.toThrow("EIO");
  expect(await world.run(kernel.list(""))).toContain("a");
  await world.clock.advance(60_000);
  expect(world.position()).toBe(before);
  expect(engine.status().paused).toContain("is damaged");
  expect(told).toHaveLength(1);
});
