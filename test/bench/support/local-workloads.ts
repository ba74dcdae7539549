/** What programs do all day, on files that are here: no figure waits for the gateway. */
import { join } from "node:path";
import { check, type Place } from "../../support/wsfs.ts";
import type { Calls } from "./calls.ts";
import type { Workload } from "./rounds.ts";
import { SAMPLE_FILES } from "./sample-tree.ts";
import { dropCaches, empty, makeFolder, type Side } from "./sides.ts";

export interface Tools {
  readonly place: Place;
  readonly calls: Calls;
  readonly sampleTar: string;
  /** The git repository to clone. */
  readonly repository: string;
}

export const LOCAL_WORKLOADS = [
  "write-64m",
  "read-64m",
  "read-512m",
  "read-64m-dropped",
  "read-512m-dropped",
  "random-64m",
  "random-512m-dropped",
  "stat",
  "open-read-close",
  "create-write-close",
  "untar",
  "rm",
  "git",
] as const;

type Local = Workload<Side> & { readonly name: (typeof LOCAL_WORKLOADS)[number] };

const MIB = 1024 ** 2;
const BLOCK = 4096;
const READ_BLOCK = 128 * 1024;
const RANDOM_READS = 10_000;
const FILES = 1000;
const STAT_PASSES = 20;

export function localWorkloads(tools: Tools): Local[] {
  const { place, calls, sampleTar } = tools;
  const cleanUp = (side: Side) => empty(place, side);
  const untar = async (folder: string) => check(await place.sh(`tar -xf '${sampleTar}' -C '${folder}'`));

  return [
    {
      name: "write-64m",
      measures: "a new file of 64 MiB in 4 KiB write calls, with open and close",
      command: `dd if=/dev/zero of=DIR/file bs=4k count=${(64 * MIB) / BLOCK}`,
      unit: "s",
      rounds: 5,
      async measure(side, round) {
        const { seconds, count } = await calls("write", join(side.folder, `file-${round}`), 64 * MIB, BLOCK);
        expectCount(count, 64 * MIB);
        return seconds;
      },
      cleanUp,
    },
    readWorkload(tools, { name: "read-64m", size: 64 * MIB, isDropped: false }),
    readWorkload(tools, { name: "read-512m", size: 512 * MIB, isDropped: false }),
    readWorkload(tools, { name: "read-64m-dropped", size: 64 * MIB, isDropped: true }),
    readWorkload(tools, { name: "read-512m-dropped", size: 512 * MIB, isDropped: true }),
    randomWorkload(tools, { name: "random-64m", size: 64 * MIB, isDropped: false }),
    randomWorkload(tools, { name: "random-512m-dropped", size: 512 * MIB, isDropped: true }),
    {
      name: "stat",
      measures: `stat(2), warm, a call (${FILES} files in turn)`,
      command: "stat DIR/files/*",
      unit: "s",
      rounds: 5,
      setUp: (side) => makeFiles(tools, side),
      async measure(side) {
        const { seconds, count } = await calls("stat", join(side.folder, "files"), FILES, STAT_PASSES);
        return seconds / count;
      },
      cleanUp,
    },
    {
      name: "open-read-close",
      measures: `open, read and close of a file of 4 KiB, a file (${FILES} files, read once before)`,
      command: "cat DIR/files/*",
      unit: "s",
      rounds: 5,
      setUp: (side) => makeFiles(tools, side),
      async measure(side) {
        const { seconds, count } = await calls("open", join(side.folder, "files"), FILES);
        return seconds / count;
      },
      cleanUp,
    },
    {
      name: "create-write-close",
      measures: `create, one write and close of a file of 4 KiB, a file (${FILES} files)`,
      command: "cp FILES DIR/new/",
      unit: "s",
      rounds: 5,
      prepare: async (side, round) => void (await makeFolder(place, side, `new-${round}`)),
      async measure(side, round) {
        const { seconds, count } = await calls("create", join(side.folder, `new-${round}`), FILES, BLOCK);
        return seconds / count;
      },
      cleanUp,
    },
    {
      name: "untar",
      measures: `tar x of ${SAMPLE_FILES} files of 0.2 to 8 KB, until tar returns`,
      command: "tar -xf sample.tar -C DIR/tree",
      unit: "s",
      rounds: 5,
      prepare: async (side, round) => void (await makeFolder(place, side, `tree-${round}`)),
      async measure(side, round) {
        const { seconds } = await calls("run", 0, "tar", "-xf", sampleTar, "-C", join(side.folder, `tree-${round}`));
        return seconds;
      },
      cleanUp,
    },
    {
      name: "rm",
      measures: "rm -rf of the same files, uploaded before",
      command: "rm -rf DIR/tree",
      unit: "s",
      rounds: 5,
      async prepare(side, round) {
        await untar(await makeFolder(place, side, `tree-${round}`));
      },
      async measure(side, round) {
        const { seconds } = await calls("run", 0, "rm", "-rf", join(side.folder, `tree-${round}`));
        return seconds;
      },
      cleanUp,
    },
    {
      name: "git",
      measures: "git clone of this repository without hard links, then git status",
      command: "git clone --no-hardlinks REPOSITORY DIR/clone && git -C DIR/clone status",
      unit: "s",
      rounds: 5,
      async measure(side, round) {
        const clone = join(side.folder, `clone-${round}`);
        const script = 'git clone -q --no-hardlinks "$1" "$2" && git -C "$2" status --porcelain';
        const { seconds, output } = await calls("run", 0, "sh", "-c", script, "sh", tools.repository, clone);
        if (output !== "") throw new Error(`git status of a fresh clone says ${output}`);
        return seconds;
      },
      cleanUp,
    },
  ];
}

interface ReadOptions {
  readonly name: Local["name"];
  readonly size: number;
  /** The machine's caches are dropped before each round; else the file is in the page cache. */
  readonly isDropped: boolean;
}

const DROP = "echo 3 > /proc/sys/vm/drop_caches";

function readWorkload(tools: Tools, options: ReadOptions): Local {
  const { size, isDropped } = options;
  return {
    ...readingOf(tools, options),
    measures: `read of ${whatIsRead(options)}`,
    command: isDropped ? `${DROP}; cat DIR/file` : "cat DIR/file; cat DIR/file",
    async measure(side) {
      const { seconds, count } = await tools.calls("read", join(side.folder, "file"), READ_BLOCK);
      expectCount(count, size);
      return seconds;
    },
  };
}

function randomWorkload(tools: Tools, options: ReadOptions): Local {
  return {
    ...readingOf(tools, options),
    measures: `${RANDOM_READS} reads of 4 KiB anywhere in ${whatIsRead(options)}, a read`,
    command: `${options.isDropped ? `${DROP}; ` : ""}pread(4 KiB) of DIR/file at random`,
    async measure(side) {
      const { seconds, count } = await tools.calls("random", join(side.folder, "file"), BLOCK, RANDOM_READS);
      return seconds / count;
    },
  };
}

function whatIsRead({ size, isDropped }: ReadOptions): string {
  const where = isDropped ? "the machine's caches dropped" : "in the page cache";
  return `a file of ${size / MIB} MiB that is here, ${where}`;
}

/** All but what is read of the file. */
function readingOf({ place, calls }: Tools, { name, size, isDropped }: ReadOptions) {
  const fileOf = (side: Side) => join(side.folder, "file");
  return {
    name,
    unit: "s",
    rounds: 5,
    async setUp(side: Side) {
      await calls("write", fileOf(side), size, READ_BLOCK);
      await side.finishWork();
    },
    async ready(side: Side) {
      if (isDropped) await dropCaches(place);
      else await calls("read", fileOf(side), READ_BLOCK);
    },
    cleanUp: (side: Side) => empty(place, side),
  } as const satisfies Partial<Local>;
}

async function makeFiles({ place, calls }: Tools, side: Side): Promise<void> {
  await calls("create", await makeFolder(place, side, "files"), FILES, BLOCK);
}

export function expectCount(got: number, expected: number): void {
  if (got !== expected) throw new Error(`expected ${expected}, got ${got}`);
}
