/** What the cold workloads look at: put into a folder while the gateway is near, looked at when it is far. */
import { join } from "node:path";
import { check, type Place, type TestGateway } from "../../support/wsfs.ts";
import type { Calls } from "./calls.ts";
import { NEEDLE } from "./sample-tree.ts";

export const MANY_FOLDERS = 100;
export const MANY_FILES = 10_000;
export const NOTES = 500;
export const BIG_SIZE = 512 * 1024 ** 2;
export const MIDDLE_SIZE = 16 * 1024 ** 2;

const BLOCK = 128 * 1024;

export interface Sources {
  readonly place: Place;
  readonly calls: Calls;
  readonly sampleTar: string;
}

/** Each by the name of its folder or file. */
export const FAR_CONTENT = {
  /** 1,000 small text files. */
  async sample({ place, sampleTar }: Sources, path: string) {
    check(await place.sh(`mkdir '${path}' && tar -xf '${sampleTar}' -C '${path}'`));
  },
  /** Files with a line each. */
  async many({ place }: Sources, path: string) {
    const each = MANY_FILES / MANY_FOLDERS;
    const fill = `mkdir -p '${path}'/d$d && for f in $(seq ${each}); do echo "$d $f" > '${path}'/d$d/f$f; done`;
    check(await place.sh(`set -e; for d in $(seq ${MANY_FOLDERS}); do ${fill}; done`, { timeoutMs: 600_000 }));
  },
  /** Text files of 4 KiB in one folder; one of them holds the needle. */
  async notes({ place }: Sources, path: string) {
    const fill = `for f in $(seq ${NOTES}); do head -c 4096 < <(yes "line of note $f") > '${path}'/note-$f; done`;
    check(await place.sh(`set -e; mkdir '${path}'; ${fill}; echo ${NEEDLE} >> '${path}'/note-${NOTES / 2}`));
  },
  async big({ calls }: Sources, path: string) {
    await calls("write", path, BIG_SIZE, BLOCK);
  },
  async middle({ calls }: Sources, path: string) {
    await calls("write", path, MIDDLE_SIZE, BLOCK);
  },
} as const;

export type FarContent = keyof typeof FAR_CONTENT;

export async function putContent(sources: Sources, folder: string, names: ReadonlySet<FarContent>): Promise<void> {
  for (const name of names) await FAR_CONTENT[name](sources, join(folder, name));
}

/** With these, and `latency` milliseconds away. */
export async function farGateway(
  sources: Sources,
  names: ReadonlySet<FarContent>,
  latency: number,
): Promise<TestGateway> {
  const { place } = sources;
  const near = await place.gateway({ name: "far" });
  const mount = await place.mount(near, { name: "far-filler" });
  await putContent(sources, mount.dir, names);
  await mount.umount("--drain=600");
  check(await near.stop());
  // The same data again, from now on far away.
  return place.gateway({ name: "far", args: ["--latency", String(latency)] });
}
