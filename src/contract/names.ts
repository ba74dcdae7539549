/** Which names a node may have, and how paths are written. Names are Unicode text and are kept unchanged. */

/** In bytes of UTF-8, like NAME_MAX of Linux. */
export const NAME_BYTES_MAX = 255;

/** Returns the fault of a name, as the end of a sentence. Undefined: there is none. */
export function nameProblem(name: string): string | undefined {
  if (name === "") return "is empty";
  if (name === "." || name === "..") return `is "${name}"`;
  if (name.includes("/")) return 'contains "/"';
  if (name.includes("\0")) return "contains a NUL";
  if (!name.isWellFormed()) return "is not well-formed Unicode";
  const bytes = Buffer.byteLength(name);
  if (bytes > NAME_BYTES_MAX) return `has ${bytes} bytes, more than ${NAME_BYTES_MAX}`;
  return undefined;
}

/** The names of a path. A leading "/" is allowed; "/" and "" are the root. */
export function splitPath(path: string): string[] {
  const relative = path.startsWith("/") ? path.slice(1) : path;
  return relative === "" ? [] : relative.split("/");
}

/** Node paths begin with "/"; the root's is "/". */
export function joinPath(parent: string, name: string): string {
  return parent === "/" ? `/${name}` : `${parent}/${name}`;
}

/** A longer text after a dot is no extension, and may be cut. */
const EXTENSION_BYTES_MAX = 32;

/** "report (REMARK).txt"; with " 2", " 3" … while that name is taken. */
export function nameBeside(name: string, remark: string, isTaken: (candidate: string) => boolean): string {
  const dot = name.lastIndexOf(".");
  // ".bashrc" has no extension.
  const end = dot > 0 && Buffer.byteLength(name.slice(dot)) <= EXTENSION_BYTES_MAX ? dot : name.length;
  for (let number = 1; ; number += 1) {
    const suffix = ` (${remark}${number === 1 ? "" : ` ${number}`})${name.slice(end)}`;
    let stem = name.slice(0, end);
    while (Buffer.byteLength(stem + suffix) > NAME_BYTES_MAX) stem = [...stem].slice(0, -1).join("");
    if (!isTaken(stem + suffix)) return stem + suffix;
  }
}
