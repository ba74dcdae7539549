/**
 * libfuse 2 uses paths, the file system uses kernel node ids. A path is looked up name by name. The node id at its end
 * counts as known while it is in use, and is then forgotten. Folders are remembered until another mount changes a name,
 * or a folder moves or goes.
 *
 * When a program removes an open file, libfuse renames it to ".fuse_hidden…", and removes it when it is closed. Here
 * the file loses its name at once, as the program wanted. Only libfuse knows the hidden name: it is never listed or
 * uploaded.
 */
import { LRUCache } from "lru-cache";
import { type Caller, type FileSystem, FsError, type KernelNodeId, kernelNodeId } from "../engine/api/index.ts";

const ROOT = kernelNodeId(1);
const NAME_MAX = 255;
const FOLDERS_MAX = 1000;

/**
 * libfuse's package decodes bytes that are not UTF-8 to this character. The original bytes are lost, and may be the
 * name of another file.
 */
const NOT_UTF8 = "\ufffd";

const HIDDEN = /^\.fuse_hidden[0-9a-f]{8,}([0-9a-f]{8})$/;
/** libfuse tries at most so many names for one file. */
const HIDDEN_TRIES = 10;

export interface Paths {
  /** Calls `action` with the node id at the path. Looks it up once more if it is superseded at this moment (ESTALE). */
  at<T>(caller: Caller, path: string, action: (kernelNodeId: KernelNodeId) => Promise<T>): Promise<T>;
  /** Calls `action` with the folder and the last name of the path, which need not exist. */
  below<T>(caller: Caller, path: string, action: (parent: KernelNodeId, name: string) => Promise<T>): Promise<T>;
  /** Holds the node id until `letGo` was called as often. Then all `answers` that named it are given back (FORGET). */
  hold(kernelNodeId: KernelNodeId, answers?: number): void;
  letGo(kernelNodeId: KernelNodeId): void;
  /** Forgets the remembered folders: they are looked up again. */
  forgetFolders(): void;
  /**
   * True if libfuse would give this name to an open file that it hides now. libfuse counts the names it gives, which
   * tells its names from those of other programs.
   */
  looksHidden(from: string, to: string): boolean;
  /** Removes the name by `action`; the file goes on under the hidden name. */
  hide(
    caller: Caller,
    from: string,
    to: string,
    action: (parent: KernelNodeId, name: string) => Promise<void>,
  ): Promise<void>;
  /** False: no hidden file has that name. */
  unhide(path: string): boolean;
  /** True if the folder contains a hidden file that libfuse will still remove. */
  hides(folder: KernelNodeId): boolean;
}

interface Hidden {
  readonly kernelNodeId: KernelNodeId;
  readonly folder: KernelNodeId;
}

export function createPaths(fileSystem: Pick<FileSystem, "lookup" | "forget">): Paths {
  const inUse = new Map<KernelNodeId, { uses: number; answers: number }>();
  const folders = new LRUCache<string, KernelNodeId>({ max: FOLDERS_MAX, dispose: letGo });
  /** By name. libfuse gives no name twice. */
  const hidden = new Map<string, Hidden>();
  let lastHidden = 0;
  let forgottenByKernel = 0;

  function hold(kernelNodeId: KernelNodeId, answers = 0): void {
    const now = inUse.get(kernelNodeId) ?? { uses: 0, answers: 0 };
    inUse.set(kernelNodeId, { uses: now.uses + 1, answers: now.answers + answers });
  }

  function letGo(kernelNodeId: KernelNodeId): void {
    const { uses, answers } = inUse.get(kernelNodeId) ?? { uses: 0, answers: 0 };
    if (uses > 1) {
      inUse.set(kernelNodeId, { uses: uses - 1, answers });
      return;
    }
    inUse.delete(kernelNodeId);
    if (answers > 0) fileSystem.forget([{ kernelNodeId, count: answers }]);
  }

  /** The caller must let go of the node id that is found; the same holds for `findFolder`. */
  async function find(caller: Caller, path: string): Promise<KernelNodeId> {
    const { folder, name } = split(path);
    const known = name === "" ? ROOT : hidden.get(name)?.kernelNodeId;
    if (known !== undefined) {
      hold(known);
      return known;
    }
    const then = forgottenByKernel;
    const parent = await findFolder(caller, folder);
    try {
      const { kernelNodeId, ...found } = await fileSystem.lookup(caller, parent, name);
      if (kernelNodeId === undefined || !("stat" in found)) throw new FsError("ENOENT", `no ${path}`);
      hold(kernelNodeId, 1);
      if (found.stat.kind === "folder" && then === forgottenByKernel && !folders.has(path)) {
        hold(kernelNodeId);
        folders.set(path, kernelNodeId);
      }
      return kernelNodeId;
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

  async function at<T>(caller: Caller, path: string, action: (kernelNodeId: KernelNodeId) => Promise<T>): Promise<T> {
    for (let isFirst = true; ; isFirst = false) {
      const kernelNodeId = await find(caller, path);
      try {
        return await action(kernelNodeId);
      } catch (error) {
        if (!isFirst || !(error instanceof FsError) || error.code !== "ESTALE") throw error;
      } finally {
        letGo(kernelNodeId);
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
      // Also when hiding fails: libfuse does not count back.
      lastHidden = counterOf(to);
      return below(caller, from, async (folder, name) => {
        const kernelNodeId = await find(caller, from);
        let willCome = false;
        try {
          await action(folder, name);
          // If libfuse was told meanwhile that hiding failed, it will not remove the hidden name.
          willCome = !caller.signal.aborted;
        } finally {
          if (willCome) hidden.set(split(to).name, { kernelNodeId, folder });
          else letGo(kernelNodeId);
        }
      });
    },
    unhide(path) {
      const { name } = split(path);
      const found = hidden.get(name);
      if (found === undefined) return false;
      hidden.delete(name);
      letGo(found.kernelNodeId);
      return true;
    },
    hides: (folder) => [...hidden.values()].some((one) => one.folder === folder),
  };
}

function counterOf(path: string): number {
  return Number.parseInt(HIDDEN.exec(split(path).name)?.[1] ?? "", 16);
}

/** Throws an FsError EILSEQ. */
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
