/** A FileSystem that writes down how it is called, and a file for it to answer with. */

import type { FileSystem, Found, Stat } from "../../src/engine/api/index.ts";
import { inodeId, kernelNodeId } from "../../src/metadata/ids.ts";
import { type Part, startFakeKernel } from "./fake-kernel.ts";

export const EMPTY = Buffer.alloc(0);

/** Body of READ, READDIR and READDIRPLUS. */
export const READ = (fh: bigint, offset: bigint, size: number): Part[] => [fh, offset, size, 0, 0n, 0o100000, 0];

export const STAT: Stat = {
  inode: inodeId(4_294_967_299),
  kind: "file",
  mode: 0o4751,
  links: 3,
  uid: 11,
  gid: 12,
  rdev: 0,
  size: 5_368_709_127,
  blocks: 77,
  atime: { seconds: 1, nanoseconds: 2 },
  mtime: { seconds: 5_000_000_003, nanoseconds: 4 },
  ctime: { seconds: -5, nanoseconds: 999_999_999 },
  btime: { seconds: 7, nanoseconds: 8 },
};
export const FOUND: Found = {
  stat: STAT,
  kernelNodeId: kernelNodeId(8_589_934_593),
  validMs: 1500.5,
  entryValidMs: 3_600_000,
};

export type Arguments = unknown[];

/**
 * A file system that writes down each call (without its Caller) and answers what it is told. Its kernel has the root's
 * attributes already.
 */
export function recorder(answers: Record<string, unknown>) {
  const calls: [string, ...Arguments][] = [];
  const record =
    (name: string) =>
    (...args: Arguments) => {
      const withoutCaller = args.filter((arg) => typeof arg !== "object" || arg === null || !("signal" in arg));
      calls.push([name, ...withoutCaller]);
      const answer = answers[name];
      return name === "forget" ? undefined : Promise.resolve(typeof answer === "function" ? answer(...args) : answer);
    };
  const fileSystem = new Proxy({} as FileSystem, {
    get(_, name: string) {
      if (name === "changes") return 0;
      return name === "noteProgramTime" ? () => {} : record(name);
    },
  });
  return { calls, kernel: startFakeKernel({ fileSystem, rootIsKnown: true }) };
}
