/**
 * libfuse 2 speaks of paths, the file system of lineages. A path is followed name by name; what it led to counts as
 * known for as long as anything is done with it, and is forgotten then.
 * Folders are remembered until some name changes that nobody here asked for, or a folder moves or goes.
 *
 * A file that is open and removed libfuse renames to ".fuse_hidden…" and removes when it is closed. Here it loses its
 * name at once, as its program wanted: the hidden name is known to libfuse alone, nobody lists or uploads it.
 */
import { LRUCache } from "lru-cache";
import { type Caller, type FileSystem, FsError, type KernelNodeId, kernelNodeId } from "../engine/api/index.ts";

const ROOT = kernelNodeId(1);
const NAME_MAX = 255;
const FOLDERS_MAX = 1000;

/** What cannot be decoded comes as this: which bytes it was is not told, and they may name another file than this does. */
const NOT_UTF8 = "\ufffd";

const HIDDEN = /^\.fuse_hidden[0-9a-f]{8,}([0-9a-f]{8})$/;
/** libfuse tries so many names for one file. */
const HIDDEN_TRIES = 10;

export interface Paths {
  /** Calls with what is at the path. It is looked up once more where it is superseded at this moment (ESTALE). */
  at<T>(caller: Caller, path: string, action: (lineage: KernelNodeId) => Promise<T>): Promise<T>;
  /** Calls with the folder and the name at the path's end, which need not be there. */
  below<T>(caller: Caller, path: string, action: (parent: KernelNodeId, name: string) => Promise<T>): Promise<T>;
  /** It stays known until it is let go as often; then all `answers` that named it are given back. */
  hold(lineage: KernelNodeId, answers?: number): void;
  letGo(lineage: KernelNodeId): void;
  /** Folders are looked up again. */
  forgetFolders(): void;
  /** Whether libfuse would so hide an open file now, told by how it counts: such a name may be somebody's own. */
  looksHidden(from: string, to: string): boolean;
  /** What `action` takes the name off goes on under the hidden one. */
  hide(
    caller: Caller,
    from: string,
    to: string,
    action: (parent: KernelNodeId, name: string) => Promise<void>,
  ): Promise<void>;
  /** False: there is none of that name. */
  unhide(path: string): boolean;
  /** Whether libfuse will still come for something hidden in this folder. */
  hides(folder: KernelNodeId): boolean;
}

interface Hidden {
  readonly lineage: KernelNodeId;
  readonly folder: KernelNodeId;
}

export function createPaths(fileSystem: Pick<FileSystem, "lookup" | "forget">): Paths {
  const held = new Map<KernelNodeId, { uses: number; answers: number }>();
  const folders = new LRUCache<string, KernelNodeId>({ max: FOLDERS_MAX, dispose: letGo });
  /** By name: libfuse gives none twice. */
  const hidden = new Map<string, Hidden>();
  let lastHidden = 0;
  let forgottenByKernel = 0;

  function hold(lineage: KernelNodeId, answers = 0): void {
    const now = held.get(lineage) ?? { uses: 0, answers: 0 };
    held.set(lineage, { uses: now.uses + 1, answers: now.answers + answers });
  }

  function letGo(lineage: KernelNodeId): void {
    const { uses, answers } = held.get(lineage) ?? { uses: 0, answers: 0 };
    if (uses > 1) {
      held.set(lineage, { uses: uses - 1, answers });
      return;
    }
    held.delete(lineage);
    if (answers > 0) fileSystem.forget([{ lineage, count: answers }]);
  }

  /** What it finds is to be let go, here and in `findFolder`. */
  async function find(caller: Caller, path: string): Promise<KernelNodeId> {
    const { folder, name } = split(path);
    const known = name === "" ? ROOT : hidden.get(name)?.lineage;
    if (known !== undefined) {
      hold(known);
      return known;
    }
    const then = forgottenByKernel;
    const parent = await findFolder(caller, folder);
    try {
      const { lineage, ...found } = await fileSystem.lookup(caller, parent, name);
      if (lineage === undefined || !("stat" in found)) throw new FsError("ENOENT", `no ${path}`);
      hold(lineage, 1);
      if (found.stat.kind === "folder" && then === forgottenByKernel && !folders.has(path)) {
        hold(lineage);
        folders.set(path, lineage);
      }
      return lineage;
    } finally {
      letGo(parent);
    }
  }

  async function findFolder(caller: Caller, path: string): Promise<KernelNodeId> {
    const known = folders.get(path);
    if (known === undefined) return find(caller, path);
    hold(known);
    return known;
  }

  async function at<T>(caller: Caller, path: string, action: (lineage: KernelNodeId) => Promise<T>): Promise<T> {
    for (let isFirst = true; ; isFirst = false) {
      const lineage = await find(caller, path);
      try {
        return await action(lineage);
      } catch (error) {
        if (!isFirst || !(error instanceof FsError) || error.code !== "ESTALE") throw error;
      } finally {
        letGo(lineage);
      }
    }
  }

  async function below<T>(
    caller: Caller,
    path: string,
    action: (parent: KernelNodeId, name: string) => Promise<T>,
  ): Promise<T> {
    const { folder, name } = split(path);
    const parent = await findFolder(caller, folder);
    try {
      return await action(parent, name);
    } finally {
      letGo(parent);
    }
  }

  return {
    at,
    below,
    hold,
    letGo,
    forgetFolders() {
      forgottenByKernel += 1;
      folders.clear();
    },
    looksHidden(from, to) {
      const counter = counterOf(to);
      return split(from).folder === split(to).folder && counter > lastHidden && counter <= lastHidden + HIDDEN_TRIES;
    },
    hide(caller, from, to, action) {
      // Also where it fails: libfuse does not count back.
      lastHidden = counterOf(to);
      return below(caller, from, async (folder, name) => {
        const lineage = await find(caller, from);
        let willCome = false;
        try {
          await action(folder, name);
          // Where it was told that this failed, meanwhile, libfuse will not come for what is hidden.
          willCome = !caller.signal.aborted;
        } finally {
          if (willCome) hidden.set(split(to).name, { lineage, folder });
          else letGo(lineage);
        }
      });
    },
    unhide(path) {
      const { name } = split(path);
      const found = hidden.get(name);
      if (found === undefined) return false;
      hidden.delete(name);
      letGo(found.lineage);
      return true;
    },
    hides: (folder) => [...hidden.values()].some((one) => one.folder === folder),
  };
}

function counterOf(path: string): number {
  return Number.parseInt(HIDDEN.exec(split(path).name)?.[1] ?? "", 16);
}

/** Throws EILSEQ. */
export function requireUtf8(text: string): void {
  if (text.includes(NOT_UTF8)) throw new FsError("EILSEQ", `${text}: not UTF-8`);
}

function split(path: string): { folder: string; name: string } {
  requireUtf8(path);
  const slash = path.lastIndexOf("/");
  const name = path.slice(slash + 1);
  if (Buffer.byteLength(name) > NAME_MAX) throw new FsError("ENAMETOOLONG", `a name of over ${NAME_MAX} bytes`);
  return { folder: path.slice(0, slash) || "/", name };
}
