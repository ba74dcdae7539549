/**
 * Remembers what programs were promised, and reports what was not kept:
 *
 * 1. A content that a program finished writing (its close returned) is at the gateway at the end, as a version of some
 *    node, deleted ones included, unless a program destroyed those very bytes through the same mount before they were sent:
 *    wrote into the file, truncated it, or removed its last name. The file of an operation is read from the mount's rows,
 *    so a content that was moved is not destroyed by a change of its old name.
 * 2. No mount overwrites or deletes what it has not shown: when its request replaces or deletes a head, that head is a
 *    version that it wrote or showed before. Of a linked file one name may go with a newer head while another name that is
 *    not deleted has the same bytes as its head: nothing is lost with it. Of a name that is behind, the mount need not have
 *    shown the content of the node: the one that replaced it under another name is enough (replaced.ts).
 * 3. A node that a mount deleted at the gateway does not come back there, however late listings are.
 *
 * Contents are known by their hash; no two programs write the same bytes.
 */
import { ALL_FEATURES, type Features } from "../../../src/contract/features.ts";
import type { HttpRequest } from "../../../src/contract/http.ts";
import { receipt, type WrittenNode, writtenNode } from "../../../src/contract/resources.ts";
import type { GatewayAnswer } from "../../../src/gateway/exchange.ts";
import type { Connection, Statement } from "../../../src/lib/sqlite/index.ts";
import { ROOT_INODE } from "../../../src/metadata/metadata.ts";
import { type Calls, codeOf, split } from "./calls.ts";
import type { Mount } from "./mount.ts";
import { createReplaced } from "./replaced.ts";
import { hashOf } from "./tree.ts";

interface Finished {
  readonly mount: string;
  readonly path: string;
  readonly hash: string;
}

interface Version {
  readonly id: string;
  readonly hash: string;
}

export interface Oracle {
  /** The mount's system calls, watched. */
  watch(mount: Mount, calls: Calls): Calls;
  /** The mount has just died: what was being destroyed may or may not be. */
  crashed(mount: Mount): void;
  /** The mount was drained and begins again with nothing: its inodes are others. */
  forget(mount: Mount): void;
  /** The mount was drained: what it holds must be at the gateway now. One line for each that is not. */
  drained(mount: Mount): string[];
  /** For the world's onAnswer: rule 2. */
  onAnswer(mount: Mount, request: HttpRequest, answer: GatewayAnswer): void;
  /** To be called whenever something may have been taken over: what the mount shows now. */
  look(mount: Mount): void;
  /** Rule 3: one line for each node that came back. */
  returned(mount: Mount): string[];
  /** Rule 1, at the end. */
  missing(): string[];
}

const READ_MAX = 1 << 24;

/** Versions whose bytes a mount shows. Names of one hard-linked file are nodes of their own, with versions of the same bytes. */
const SHOWN = `SELECT origin_version FROM inode WHERE origin_version IS NOT NULL
  UNION SELECT base_head FROM node JOIN entry ON entry.id = node.entry JOIN inode ON inode.id = entry.inode
  WHERE base_head IS NOT NULL AND base_hash = inode.hash AND inode.kind = 'file'
  AND EXISTS (SELECT 1 FROM entry other WHERE other.inode = inode.id AND other.id <> entry.id)`;

const statements = new WeakMap<Connection, Map<string, Statement>>();

/** Prepared once. */
function pluck(database: Connection, sql: string): Statement {
  const known = statements.get(database) ?? new Map<string, Statement>();
  statements.set(database, known);
  const statement = known.get(sql) ?? database.prepare(sql).pluck();
  known.set(sql, statement);
  return statement;
}

export function createOracle(
  store: () => Connection,
  fault: (what: string) => void,
  features: Features = ALL_FEATURES,
): Oracle {
  // Rule 2 rests on conditions; where they cannot be sent, only what is read just before protects.
  const isJudged = features.isFull;
  /** Newest finished content of an inode, by mount and inode. */
  const finished = new Map<string, Finished>();
  /** What was finished under an inode that has lost its last name since or is about to. */
  const shown = new Map<string, Set<string>>();
  const endangered = new Map<string, Set<string>>();
  /** Inodes whose last name a program of the mount has taken. */
  const removed = new Set<string>();

  const replaced = createReplaced(store);

  /** Revision of their deletion, by mount and node. */
  const deleted = new Map<string, { mount: string; node: string; revision: number }>();

  const keyOf = (mount: Mount, inode: number) => `${mount.name} ${inode}`;

  function shownOn(mount: Mount): Set<string> {
    let versions = shown.get(mount.name);
    if (versions === undefined) {
      versions = new Set();
      shown.set(mount.name, versions);
    }
    return versions;
  }

  function destroy(mount: Mount, inode: number | undefined): void {
    if (inode !== undefined) finished.delete(keyOf(mount, inode));
  }

  function rows(mount: Mount): Connection | undefined {
    return mount.process?.database;
  }

  /** The inode an operation on this path meets, if it would take its last name. */
  function lastNamed(mount: Mount, path: string): number | undefined {
    const database = rows(mount);
    if (database === undefined) return undefined;
    const step = pluck(database, "SELECT inode FROM entry WHERE parent = ? AND name = ?");
    let inode: number | undefined = ROOT_INODE;
    for (const name of split(path)) {
      inode = step.get(inode, name) as number | undefined;
      if (inode === undefined) return undefined;
    }
    return links(database, inode) === 1 ? inode : undefined;
  }

  function links(database: Connection, inode: number): number {
    return Number(pluck(database, "SELECT count(*) FROM entry WHERE inode = ?").get(inode));
  }

  /** Takes the last name of a file away; whether it came to that is seen afterwards, or never. */
  async function taking<T>(mount: Mount, calls: Calls, path: string, work: () => Promise<T>): Promise<T> {
    // Looked up first, as the kernel does: what is there now is what the operation meets. Where that fails, all does.
    await calls.stat(path).catch((error: unknown) => {
      if (codeOf(error) === "EIO") throw error;
    });
    look(mount);
    const inode = lastNamed(mount, path);
    if (inode === undefined) return work();
    const key = keyOf(mount, inode);
    const risks = endangered.get(mount.name) ?? new Set();
    endangered.set(mount.name, risks.add(key));
    try {
      return await work();
    } finally {
      risks.delete(key);
      const database = rows(mount);
      if (database !== undefined && links(database, inode) === 0) {
        finished.delete(key);
        removed.add(key);
      }
    }
  }

  function watch(mount: Mount, calls: Calls): Calls {
    const open = new Map<number, { path: string; inode: number; isWritten: boolean }>();
    const writing = (fd: number) => {
      const file = open.get(fd);
      if (file === undefined) return;
      file.isWritten = true;
      destroy(mount, file.inode);
    };
    return {
      ...calls,
      async open(path, how) {
        look(mount);
        // A truncating open destroys before it answers.
        if (how.truncate === true) {
          const inode = await calls.stat(path).then(
            (status) => status.inode,
            () => undefined,
          );
          look(mount);
          destroy(mount, inode);
        }
        const fd = await calls.open(path, how);
        look(mount);
        if (how.write === true) {
          const { inode } = await calls.fstat(fd);
          if (how.truncate === true) destroy(mount, inode);
          open.set(fd, { path, inode, isWritten: how.truncate === true || how.create === true });
        }
        return fd;
      },
      async write(fd, offset, data) {
        writing(fd);
        await calls.write(fd, offset, data);
      },
      async ftruncate(fd, size) {
        writing(fd);
        await calls.ftruncate(fd, size);
      },
      async close(fd) {
        const file = open.get(fd);
        open.delete(fd);
        // What cannot be read back (offline, not all of it here) is not remembered.
        const reading = file?.isWritten === true ? calls.read(fd, 0, READ_MAX).catch(() => undefined) : undefined;
        const content = await reading;
        await calls.close(fd);
        const database = rows(mount);
        if (file === undefined || content === undefined || database === undefined) return;
        // One whose name somebody elsewhere has taken gets another for what was written.
        if (removed.has(keyOf(mount, file.inode)) || content.length === 0) return;
        finished.set(keyOf(mount, file.inode), { mount: mount.name, path: file.path, hash: hashOf(content) });
      },
      async truncate(path, size) {
        destroy(mount, (await calls.stat(path)).inode);
        await calls.truncate(path, size);
      },
      unlink: (path) => taking(mount, calls, path, () => calls.unlink(path)),
      rename: (from, to) => taking(mount, calls, to, () => calls.rename(from, to)),
    };
  }

  function isKept(hash: string): boolean {
    return pluck(store(), "SELECT 1 FROM version WHERE hash = ?").get(hash) !== undefined;
  }

  const describe = ({ mount, path, hash }: Finished) =>
    `${mount}: the content saved as ${path} is nowhere at the gateway (${hash})`;

  function look(mount: Mount): void {
    const database = rows(mount);
    if (database === undefined) return;
    const all = shownOn(mount);
    for (const version of pluck(database, SHOWN).all() as string[]) all.add(version);
  }

  function versionsOf(node: string): Version[] {
    return store().prepare("SELECT id, hash FROM version WHERE node = ? ORDER BY number").all(node) as Version[];
  }

  /** Names of one file share what is shown: the same bytes under another name's version are that version. */
  function hasShown(mount: Mount, hash: string): boolean {
    const hashOf = pluck(store(), "SELECT hash FROM version WHERE id = ?");
    return [...shownOn(mount)].some((version) => hashOf.get(version) === hash);
  }

  function expectSeen(mount: Mount, node: WrittenNode, version: Version | undefined, what: string): void {
    if (version === undefined || shownOn(mount).has(version.id)) return;
    const isShown = (hash: string) => hasShown(mount, hash);
    if (isShown(version.hash) || replaced.isReplaced(node, version.hash, isShown)) return;
    fault(`${mount.name} ${what} ${node.name} (${node.id}): it never showed version ${version.id}`);
  }

  /** The bytes of a node that has just been deleted are the head of another name of the same file, as both nodes say. */
  function isUnderOtherName({ id, contentHash, attributes: { link } }: WrittenNode): boolean {
    if (link === undefined || link.hash !== contentHash) return false;
    const other = pluck(
      store(),
      `SELECT 1 FROM node WHERE id <> ? AND deleted = 0 AND hash = ?
       AND json_extract(attributes, '$.link.group') = ? AND json_extract(attributes, '$.link.hash') = hash`,
    );
    return other.get(id, contentHash, link.group) !== undefined;
  }

  function returned(mount: Mount): string[] {
    const database = rows(mount);
    if (database === undefined) return [];
    const find = pluck(
      database,
      `SELECT entry.name FROM node JOIN entry ON entry.id = node.entry WHERE node_id = ? AND base_revision <= ?
       AND NOT EXISTS (SELECT 1 FROM attempt WHERE attempt.node = node.id AND state = 'open')`,
    );
    return [...deleted.values()].flatMap(({ mount: name, node, revision }) => {
      const found = name === mount.name ? find.get(node, revision) : undefined;
      return found === undefined ? [] : [`${name}: ${found} (${node}) is back after it was deleted`];
    });
  }

  return {
    watch,
    look,
    returned,
    crashed(mount) {
      for (const key of endangered.get(mount.name) ?? []) finished.delete(key);
      endangered.delete(mount.name);
    },
    forget(mount) {
      for (const [key, one] of finished) if (one.mount === mount.name) finished.delete(key);
    },
    drained(mount) {
      return [...finished.values()].filter((one) => one.mount === mount.name && !isKept(one.hash)).map(describe);
    },
    onAnswer(mount, request, answer) {
      look(mount);
      if (answer.status >= 300 || answer.body?.kind !== "json") return;
      if (request.method === "GET" || /\/(journal|exchange|restore)$/.test(request.path)) return;
      const told: unknown = JSON.parse(answer.body.text);
      const bare = receipt.strict().safeParse(told);
      if (bare.success) {
        // The token may not read the node, but the mount knows what it wrote: the head after that very change.
        const head = pluck(store(), "SELECT head FROM change WHERE position = ?").get(bare.data.position);
        if (["PUT", "POST"].includes(request.method) && typeof head === "string") shownOn(mount).add(head);
        return;
      }
      const node = writtenNode.parse(told);
      if (request.method === "DELETE") {
        deleted.set(`${mount.name} ${node.id}`, { mount: mount.name, node: node.id, revision: node.revision });
        if (isJudged && !isUnderOtherName(node)) {
          expectSeen(mount, node, versionsOf(node.id).at(-1), "deleted");
        }
        return;
      }
      replaced.written(node, rows(mount), (hash) => hasShown(mount, hash));
      if (node.kind === "folder" || request.method === "PATCH") return;
      const versions = versionsOf(node.id);
      const index = versions.findIndex(({ id }) => id === node.head);
      const before = versions[index - 1];
      if (isJudged && before?.hash !== versions[index]?.hash) expectSeen(mount, node, before, "overwrote");
      if (node.head !== null) shownOn(mount).add(node.head);
    },
    missing: () => [...finished.values()].filter(({ hash }) => !isKept(hash)).map(describe),
  };
}
