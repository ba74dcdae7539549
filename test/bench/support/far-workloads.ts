/** What is measured with a gateway that is far away: what was never looked at, and what programs make and remove. */
import { join } from "node:path";
import { check } from "../../support/wsfs.ts";
import { type ColdWorkload, coldWorkloads } from "./cold-workloads.ts";
import { BIG_SIZE, MIDDLE_SIZE, NOTES } from "./far-content.ts";
import { expectCount, localWorkloads, type Tools } from "./local-workloads.ts";
import type { Workload } from "./rounds.ts";
import { NEEDLE, SAMPLE_FILES } from "./sample-tree.ts";
import { type ColdSide, dropCaches, empty, makeFolder, type Side } from "./sides.ts";

const COLD = [
  "find-10k-cold",
  "grep-500-cold",
  "read-512m-cold",
  "reread-512m",
  "read-16m-cold",
  "first-byte",
] as const;
const LOCAL = ["untar", "upload", "rm", "git"] as const;
export const FAR_WORKLOADS: readonly string[] = [...COLD, ...LOCAL];

type FarCold = Omit<ColdWorkload, "name"> & { readonly name: (typeof COLD)[number] };

export function farWorkloads(tools: Tools): { cold: readonly FarCold[]; local: readonly Workload<Side>[] } {
  const known = coldWorkloads(tools);
  const shared = [...localWorkloads(tools), uploadWorkload(tools)];
  return {
    cold: COLD.flatMap((name) => [
      ...known.flatMap((workload) => (workload.name === name ? [{ ...workload, name }] : [])),
      ...ownCold(tools).filter((workload) => workload.name === name),
    ]),
    local: LOCAL.flatMap((name) => shared.filter((workload) => workload.name === name)),
  };
}

const READ_BLOCK = 128 * 1024;

function ownCold({ place, calls }: Tools): FarCold[] {
  const big = (side: ColdSide) => join(side.folder, "big");
  // A mount's fetched bytes are new on its disk, and a disk may read new blocks slower than old ones.
  const fetched = (side: ColdSide) => (side.kind === "plain" ? `${big(side)}.new` : big(side));
  const readBig = async (side: ColdSide) => {
    const { seconds, count } = await calls("read", fetched(side), READ_BLOCK);
    expectCount(count, BIG_SIZE);
    return seconds;
  };
  return [
    {
      name: "grep-500-cold",
      content: "notes",
      measures: `grep -r over ${NOTES} files of 4 KiB, never looked at`,
      command: "grep -r WORD DIR",
      unit: "s",
      rounds: 3,
      ready: (side) => side.forget(),
      async measure(side) {
        const { seconds, output } = await calls("run", 0, "grep", "-rl", NEEDLE, join(side.folder, "notes"));
        expectCount(output === "" ? 0 : output.split("\n").length, 1);
        return seconds;
      },
    },
    {
      name: "reread-512m",
      content: "big",
      measures:
        "the first reread of a file of 512 MiB that was just read for the first time, the machine's caches dropped",
      command: "cat DIR/file; echo 3 > /proc/sys/vm/drop_caches; cat DIR/file",
      unit: "s",
      rounds: 3,
      async ready(side) {
        await side.forget();
        if (side.kind === "plain") check(await place.sh(`cp '${big(side)}' '${fetched(side)}'`));
        await readBig(side);
        await dropCaches(place);
      },
      measure: readBig,
    },
    {
      name: "read-16m-cold",
      content: "middle",
      measures: "read of a file of 16 MiB, never looked at, which has to be checked before its last byte is shown",
      command: "cat DIR/file",
      unit: "s",
      rounds: 3,
      ready: (side) => side.forget(),
      async measure(side) {
        const { seconds, count } = await calls("read", join(side.folder, "middle"), READ_BLOCK);
        expectCount(count, MIDDLE_SIZE);
        return seconds;
      },
    },
    {
      name: "first-byte",
      content: "big",
      measures: "open and read of the first byte of a file of 512 MiB, never looked at",
      command: "head -c 1 DIR/file",
      unit: "s",
      rounds: 3,
      ready: (side) => side.forget(),
      measure: async (side) => (await calls("first", big(side))).seconds,
    },
  ];
}

/** Counted from the end of tar, with the pause that follows a change. */
function uploadWorkload({ place, sampleTar }: Tools): Workload<Side> {
  return {
    name: "upload",
    measures: `from the end of tar until ${SAMPLE_FILES} files of 0.2 to 8 KB are uploaded and on the disk`,
    command: "tar -xf sample.tar -C DIR/tree; wsfs drain DIR",
    unit: "s",
    rounds: 3,
    async measure(side, round) {
      const folder = await makeFolder(place, side, `upload-${round}`);
      check(await place.sh(`tar -xf '${sampleTar}' -C '${folder}'`));
      const begun = performance.now();
      await side.finishWork();
      return (performance.now() - begun) / 1000;
    },
    cleanUp: (side) => empty(place, side),
  };
}
