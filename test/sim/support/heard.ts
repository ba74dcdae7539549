/**
 * How much a mount has heard of changes at a gateway without a journal: the folders it knows, and when the last whole
 * list of each was asked for. The engine keeps no account of that: it is seen by its requests and its rows.
 */
import type { Client } from "../../../src/client/client.ts";
import type { ElapsedTime } from "../../../src/lib/clocks.ts";
import type { Connection } from "../../../src/metadata/database.ts";

export interface Heard {
  /** Known folders (inodes) of which no list is here that was asked for at `since` or later. */
  notSince(since: ElapsedTime): number[];
}

interface Listed {
  /** When the first page of a whole list was asked for, and when the last one was answered. */
  readonly askedAt: ElapsedTime;
  readonly answeredAt: ElapsedTime;
}

/** Those that are completely known, or in which something is. One that is not at the gateway nobody else can have put anything into. */
const KNOWN = `SELECT inode.id AS folder, node.node_id AS nodeId FROM inode
  JOIN entry ON entry.inode = inode.id JOIN node ON node.entry = entry.id
  WHERE inode.kind = 'folder' AND node.node_id IS NOT NULL
  AND (inode.listed IS NOT NULL OR inode.id IN (SELECT parent FROM entry)) ORDER BY inode.id`;

/** From here on the client tells. */
export function hearLists(client: Client, elapsed: () => ElapsedTime) {
  const listed = new Map<string, Listed[]>();
  const begun = new Map<string, ElapsedTime>();
  const { listFolder } = client;
  Object.assign(client, {
    async listFolder(...[nodeId, options]: Parameters<typeof listFolder>) {
      // The first page begins a list; one name that is looked for is none.
      if (options?.name !== undefined || options?.pageSize === 1) return listFolder(nodeId, options);
      if (options?.after === undefined) begun.set(nodeId, elapsed());
      const page = await listFolder(nodeId, options);
      const askedAt = begun.get(nodeId);
      const lists = listed.get(nodeId) ?? [];
      if (page.next == null && askedAt !== undefined) lists.push({ askedAt, answeredAt: elapsed() });
      listed.set(nodeId, lists);
      return page;
    },
  });
  return (rows: Connection): Heard => ({
    notSince(since) {
      const known = rows.prepare(KNOWN).all() as { readonly folder: number; readonly nodeId: string }[];
      // The simulation judges an answered list within the moment of its answer, in fair weather. So a list that is
      // answered just now does not count, but an earlier one does.
      const isHeard = ({ askedAt, answeredAt }: Listed) => askedAt >= since && answeredAt < elapsed();
      return known.filter(({ nodeId }) => listed.get(nodeId)?.some(isHeard) !== true).map(({ folder }) => folder);
    },
  });
}
