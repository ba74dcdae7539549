/** What programs do with files, as sequences of system calls: saves of all kinds, and the small tools. */
import type { ContentSource } from "../../../src/contract/http.ts";
import type { Calls } from "./calls.ts";
import { readTree } from "./past-read.ts";
import { readFile, TAG } from "./tree.ts";

export type Program =
  | { readonly do: "save"; readonly path: string; readonly size: number }
  | { readonly do: "overwrite"; readonly path: string; readonly at: number; readonly size: number }
  | { readonly do: "append"; readonly path: string; readonly size: number }
  | { readonly do: "truncate"; readonly path: string; readonly size: number }
  /** Write beside, rename over. */
  | { readonly do: "replace"; readonly path: string; readonly size: number }
  /** Move away, write new, perhaps delete what was moved away. */
  | { readonly do: "backup"; readonly path: string; readonly size: number; readonly keeps: boolean }
  /** Delete, write new. */
  | { readonly do: "recreate"; readonly path: string; readonly size: number }
  /** What is there goes, a folder comes; in the place of a folder a file. */
  | { readonly do: "retype"; readonly path: string; readonly size: number }
  | { readonly do: "unlink" | "mkdir" | "rmdir" | "symlink" | "read" | "list"; readonly path: string }
  | { readonly do: "rename" | "exchange" | "link"; readonly path: string; readonly to: string }
  | { readonly do: "chmod"; readonly path: string; readonly mode: number }
  | { readonly do: "utimens"; readonly path: string; readonly seconds: number }
  | { readonly do: "setxattr"; readonly path: string }
  /** Reads all of a folder of the past. */
  | { readonly do: "look back"; readonly path: string };

/** Recognizable bytes: no two labels give the same, but at size 0; what is too short for its label is as long as that. */
export function bytesOf(label: string, size: number): Buffer {
  const text = `${label};`;
  return Buffer.alloc(size === 0 ? 0 : Math.max(size, text.length), text);
}

/** The same as a string of one byte a character; 40 bytes is what the worlds' `save` writes. */
export const textOf = (label: string, size = 40) => bytesOf(label, size).toString("latin1");

/** To be sent by a client. */
export function sourceOf(content: Uint8Array | string): ContentSource {
  const bytes = typeof content === "string" ? Buffer.from(content) : content;
  return {
    size: bytes.length,
    async *read() {
      yield bytes;
    },
  };
}

/** Rejects with a CallError as soon as one of its calls does. */
export async function runProgram(calls: Calls, program: Program, label: string): Promise<void> {
  const { path } = program;
  switch (program.do) {
    case "save":
      return save(calls, path, bytesOf(label, program.size));
    case "overwrite":
      return change(calls, path, {}, (fd) => calls.write(fd, program.at, bytesOf(label, program.size)));
    case "append":
      return change(calls, path, { append: true }, (fd) => calls.write(fd, 0, bytesOf(label, program.size)));
    case "truncate":
      return calls.truncate(path, program.size);
    case "replace":
      await save(calls, `${path}.tmp`, bytesOf(label, program.size));
      return calls.rename(`${path}.tmp`, path);
    case "backup":
      await calls.rename(path, `${path}~`);
      await save(calls, path, bytesOf(label, program.size));
      if (!program.keeps) await calls.unlink(`${path}~`);
      return;
    case "recreate":
      await calls.unlink(path);
      return save(calls, path, bytesOf(label, program.size));
    case "retype":
      if ((await calls.stat(path)).kind === "folder") {
        await calls.rmdir(path);
        return save(calls, path, bytesOf(label, program.size));
      }
      await calls.unlink(path);
      return calls.mkdir(path);
    case "unlink":
      return calls.unlink(path);
    case "mkdir":
      return calls.mkdir(path);
    case "rmdir":
      return calls.rmdir(path);
    case "symlink":
      return calls.symlink(`to ${label}`, path);
    case "link":
      return calls.link(path, program.to);
    case "rename":
      return calls.rename(path, program.to);
    case "exchange":
      return calls.exchange(path, program.to);
    case "chmod":
      return calls.chmod(path, program.mode);
    case "utimens":
      return calls.utimens(path, program.seconds);
    case "setxattr":
      return calls.setxattr(path, TAG, label);
    case "read":
      return void (await readFile(calls, path));
    case "look back":
      return void (await readTree(calls, path));
    case "list":
      for (const name of await calls.list(path)) await calls.stat(`${path}/${name}`);
      return;
  }
}

async function save(calls: Calls, path: string, data: Buffer): Promise<void> {
  await change(calls, path, { create: true, truncate: true }, async (fd) => {
    // As most programs: in more than one piece.
    const half = Math.ceil(data.length / 2);
    if (half > 0) await calls.write(fd, 0, data.subarray(0, half));
    if (half < data.length) await calls.write(fd, half, data.subarray(half));
  });
}

async function change(
  calls: Calls,
  path: string,
  how: { create?: boolean; truncate?: boolean; append?: boolean },
  work: (fd: number) => Promise<void>,
): Promise<void> {
  const fd = await calls.open(path, { ...how, write: true });
  try {
    await work(fd);
  } finally {
    await calls.close(fd);
  }
}

export function describeProgram(program: Program): string {
  const { do: name, ...rest } = program;
  return [
    name,
    ...Object.entries(rest).map(([key, value]) => (key === "path" ? value || "/" : `${key}=${value}`)),
  ].join(" ");
}
