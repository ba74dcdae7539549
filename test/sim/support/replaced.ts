/**
 * Which contents of a linked file replaced which. A node of it that is behind has a content that was replaced under
 * another of its names, and a mount that came later has shown only the newer one. Known from the versions of the file's
 * nodes at the gateway, and from the rows of the mount that wrote a content, of which only one node may have got it.
 */
import type { WrittenNode } from "../../../src/contract/resources.ts";
import type { Connection } from "../../../src/lib/sqlite/index.ts";

interface LinkedFile {
  readonly nodes: Set<string>;
  /** Contents a node of it had as one of it. */
  readonly hashes: Set<string>;
  /** What came in place of a content, by the rows of who wrote it. */
  readonly after: Map<string, Set<string>>;
}

export interface Replaced {
  /** A mount's write was answered. `hasShown`: whether that mount has shown a content. */
  written(node: WrittenNode, rows: Connection | undefined, hasShown: (hash: string) => boolean): void;
  /** Whether something that is shown came in place of what the node had, by others of its names than this one. */
  isReplaced(node: WrittenNode, hash: string, hasShown: (hash: string) => boolean): boolean;
}

/** What the nodes have of the names that show this content of the group. */
const OF_NAMES = `SELECT DISTINCT node.base_hash FROM inode JOIN entry ON entry.inode = inode.id
  JOIN node ON node.entry = entry.id WHERE inode.link_group = ? AND inode.hash = ? AND node.base_hash <> inode.hash`;

const LATER = `SELECT DISTINCT later.hash FROM version JOIN version AS later
  ON later.node = version.node AND later.number > version.number
  WHERE version.hash = ? AND version.node <> ? AND version.node IN (SELECT value FROM json_each(?))`;

export function createReplaced(store: () => Connection): Replaced {
  const files = new Map<string, LinkedFile>();

  function fileOf(group: string): LinkedFile {
    const file = files.get(group) ?? { nodes: new Set(), hashes: new Set(), after: new Map() };
    files.set(group, file);
    return file;
  }

  return {
    written({ id, contentHash, attributes: { link } }, rows, hasShown) {
      if (link === undefined || contentHash === null || link.hash !== contentHash) return;
      const { nodes, hashes, after } = fileOf(link.group);
      nodes.add(id);
      hashes.add(contentHash);
      const before = (rows?.prepare(OF_NAMES).pluck().all(link.group, contentHash) ?? []) as string[];
      for (const hash of before.filter(hasShown)) after.set(hash, (after.get(hash) ?? new Set()).add(contentHash));
    },
    isReplaced({ id }, hash, hasShown) {
      const later = store().prepare(LATER).pluck();
      return [...files.values()].some(({ nodes, hashes, after }) => {
        if (!nodes.has(id)) return false;
        const among = JSON.stringify([...nodes]);
        const found = new Set([hash]);
        // Grows while it is gone through.
        for (const one of found) {
          for (const next of [...(later.all(one, id, among) as string[]), ...(after.get(one) ?? [])]) found.add(next);
        }
        found.delete(hash);
        return [...found].some((one) => hashes.has(one) && hasShown(one));
      });
    },
  };
}
