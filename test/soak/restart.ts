/**
 * `npm run soak -- restart N`: the daemon of a mount dies at every place of a program that makes every change
 * there is, as test/mount/restart.test.ts has a few. N programs, each with another distance between deaths
 * from 20 places on; half of them with a daemon that reads and writes files itself. Fails where a program saw an
 * error, or something else than without deaths.
 */
import { armed, dieInTurn, dieTakingOver } from "../mount/support/restart.ts";
import { daemonLabels, engineLabels } from "../support/step-labels.ts";
import { check, createPlace } from "../support/wsfs.ts";

/** More than the places of the longest call and of those that end beside it: it must not be at hand at two deaths. */
const SHORTEST = 20;

const programs = Number(process.argv[2] ?? 20);
if (!Number.isInteger(programs) || programs < 1) throw new Error(`expected a number, got ${process.argv[2]}`);
const first = Number(process.env.RESTART_FROM ?? SHORTEST);
const place = createPlace();
const all = new Map<string, number>();
try {
  const gateway = await place.gateway();
  const file = armed(place);
  for (const [name, args] of [
    ["passed", []],
    ["served", ["--no-passthrough"]],
  ] as const) {
    const mount = await place.mount(gateway, { name, args });
    const half = Math.ceil(programs / 2);
    const strides = Array.from({ length: half }, (_, index) => first + index + (name === "served" ? half : 0));
    for (const stride of strides) {
      const deaths = await dieInTurn(place, mount, file, [stride]);
      for (const [label, count] of deaths) all.set(label, (all.get(label) ?? 0) + count);
      const sum = [...deaths.values()].reduce((total, count) => total + count, 0);
      process.stdout.write(`${name}, at every ${stride}th place: ${sum} deaths\n`);
    }
    check(await place.wsfs(["drain", mount.dir, "--timeout", "180"], { timeoutMs: 200_000 }));
    await mount.umount();
  }
  for (const [label, count] of [...all].sort()) process.stdout.write(`${String(count).padStart(6)}  ${label}\n`);
  const deaths = [...all.values()].reduce((total, count) => total + count, 0);
  process.stdout.write(`${JSON.stringify({ programs, labels: all.size, deaths })}\n`);
} finally {
  await place.cleanUp();
}

for (const args of [[], ["--no-passthrough"]]) {
  const another = createPlace();
  another.env.WSFS_CRASHES = "1000000";
  try {
    const passed = await dieTakingOver(another, [...daemonLabels(), ...engineLabels()], args);
    process.stdout.write(`taking over ${args}: ${JSON.stringify(passed)}\n`);
  } finally {
    await another.cleanUp();
  }
}
