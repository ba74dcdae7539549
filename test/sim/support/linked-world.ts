/**
 * Two mounts and a file with several names: what each mount shows of them, and a save that only one of two nodes has.
 */
import { expect } from "vitest";
import type { Mount } from "./mount.ts";
import { isContentWrite } from "./requests.ts";
import { beginTwo, type More } from "./two-world.ts";

export async function beginLinked(options: Pick<More, "features" | "request"> = {}) {
  const changes: string[] = [];
  const it = await beginTwo({
    ...options,
    onAnswer: (mount, { method }, { status }) => {
      if (method !== "GET" && status < 300) changes.push(`${mount.name} ${method}`);
    },
  });
  const { world, calls, labelOf, run } = it;
  return {
    ...it,
    changes,
    save: (mount: Mount, path: string, label: string) => run(mount, { do: "save", path, size: 40 }, label),
    link: (mount: Mount, path: string, to: string) => world.run(calls(mount).link(path, to)),
    /** What a mount shows of each name: its label, its number, how many names it has. */
    async shown(mount: Mount) {
      const at = calls(mount);
      const shown = [];
      for (const name of await world.run(at.list(""))) {
        const { inode, links } = await world.run(at.stat(name));
        shown.push({ name, text: await labelOf(mount, name), inode, links });
      }
      world.check();
      return shown;
    },
    async versions(nodeId: string) {
      return (await world.run(world.outside.listVersions(nodeId))).items.length;
    },
  };
}

export type LinkedWorld = Awaited<ReturnType<typeof beginLinked>>;

/** Two names; alpha has saved once more, and only one of the nodes has got it. */
export async function halfUpdated(
  it: LinkedWorld,
  linked: () => Promise<unknown> = async () => undefined,
): Promise<void> {
  await it.save(it.alpha, "a", "old");
  await it.link(it.alpha, "a", "b");
  await it.drain(it.alpha);
  await linked();
  let sent = 0;
  it.rules.choose = (request) => {
    if (!isContentWrite(request)) return undefined;
    sent += 1;
    return sent === 1 ? undefined : "silent-before";
  };
  await it.save(it.alpha, "b", "new");
  await it.until(() => sent >= 2);
}

export const oneFile = (text: string) => (shown: Awaited<ReturnType<LinkedWorld["shown"]>>) => {
  expect(shown.map(({ name, links }) => [name, links])).toEqual([
    ["a", 2],
    ["b", 2],
  ]);
  expect(shown.map((one) => one.text)).toEqual([text, text]);
  expect(new Set(shown.map(({ inode }) => inode)).size).toBe(1);
};
