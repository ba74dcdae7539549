/**
 * The system calls programs make, by path and descriptor. A mount answers them (kernel.ts), and so does a plain tree in
 * memory (model.ts): what one does the other must do. No call follows symlinks.
 */
import type { FileKind } from "../../../src/engine/api/index.ts";

/** What every failing call rejects with. */
export class CallError extends Error {
  readonly code: string;

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(`${code}: ${message}`, options);
    this.name = "CallError";
    this.code = code;
  }
}

export interface OpenHow {
  readonly write?: boolean;
  readonly create?: boolean;
  readonly exclusive?: boolean;
  readonly truncate?: boolean;
  readonly append?: boolean;
}

export interface Status {
  /** Of this tree only. */
  readonly inode: number;
  readonly kind: FileKind;
  readonly size: number;
  readonly mode: number;
  /** "seconds.nnnnnnnnn" */
  readonly mtime: string;
  readonly links: number;
}

export interface Calls {
  open(path: string, how: OpenHow): Promise<number>;
  fstat(fd: number): Promise<Status>;
  /** Fewer bytes only at the end of the file. */
  read(fd: number, offset: number, length: number): Promise<Buffer>;
  /** `offset` counts for nothing when opened to append. */
  write(fd: number, offset: number, data: Uint8Array): Promise<void>;
  ftruncate(fd: number, size: number): Promise<void>;
  fsync(fd: number): Promise<void>;
  close(fd: number): Promise<void>;

  stat(path: string): Promise<Status>;
  /** Names in order. */
  list(path: string): Promise<string[]>;
  readlink(path: string): Promise<string>;
  truncate(path: string, size: number): Promise<void>;
  mkdir(path: string): Promise<void>;
  rmdir(path: string): Promise<void>;
  unlink(path: string): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  /** renameat2 with RENAME_EXCHANGE. */
  exchange(from: string, to: string): Promise<void>;
  symlink(target: string, path: string): Promise<void>;
  link(from: string, to: string): Promise<void>;
  chmod(path: string, mode: number): Promise<void>;
  /** Modification time, whole seconds. */
  utimens(path: string, seconds: number): Promise<void>;
  setxattr(path: string, name: string, value: string): Promise<void>;
  getxattr(path: string, name: string): Promise<string>;
  listxattr(path: string): Promise<string[]>;
}

/** What a program may run into when the gateway cannot be reached, or refuses. */
export const NETWORK_CODES: ReadonlySet<string> = new Set(["EIO", "EACCES", "EROFS"]);

export type CallName = keyof Calls;

export function split(path: string): string[] {
  return path.split("/").filter((name) => name !== "");
}

/** Whether one is somewhere below the other. */
export function isWithin(path: string, folder: string): boolean {
  const [inner, outer] = [split(path), split(folder)];
  return inner.length > outer.length && outer.every((name, index) => name === inner[index]);
}

export function codeOf(error: unknown): string {
  if (error instanceof CallError) return error.code;
  throw error;
}
