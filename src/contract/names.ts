/** Which names a node may have, and how paths are written. Names are Unicode text, kept as they are. */

/** In bytes of UTF-8, as NAME_MAX of Linux. */
export const NAME_BYTES_MAX = 255;

/** What is wrong with a name, as the end of a sentence; undefined when it is good. */
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

/** The names of a path; a leading "/" is allowed, "/" and "" are the root. */
export function splitPath(path: string): string[] {
  const relative = path.startsWith("/") ? path.slice(1) : path;
  return relative === "" ? [] : relative.split("/");
}

/** Node paths begin with "/"; the root's is "/". */
export function joinPath(parent: string, name: string): string {
  return parent === "/" ? `/${name}` : `${parent}/${name}`;
}
