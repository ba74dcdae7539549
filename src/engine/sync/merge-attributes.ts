/** Merges attributes that were changed on both sides. Pure. */
import { type Attributes, sameValue } from "../../contract/attributes.ts";

/** The mtime belongs to the version. Content that is adopted brings its own mtime, or none. */
export function withTimeOf(remote: Attributes, merged: Attributes): Attributes {
  const { mtime: _, ...rest } = merged;
  return remote.mtime === undefined ? rest : { ...rest, mtime: remote.mtime };
}

/**
 * Key by key: a value that was changed here stays, else the remote value counts. Extended attributes are merged by
 * name. If both sides changed the mtime of a folder, the later one counts.
 */
export function mergeAttributes(
  base: Attributes,
  local: Attributes,
  remote: Attributes,
  isFolder: boolean,
): Attributes {
  let merged = mergeRecords(base, local, remote) as Attributes;
  for (const [number, name] of OWNERS) merged = withOneOwner(merged, number, name, [base, local, remote]);
  const isMtimeDisputed = !sameValue(base.mtime, local.mtime) && !sameValue(base.mtime, remote.mtime);
  if (isFolder && isMtimeDisputed && local.mtime !== undefined && remote.mtime !== undefined) {
    merged.mtime = isLater(local.mtime, remote.mtime) ? local.mtime : remote.mtime;
  }
  return merged;
}

const OWNERS = [
  ["uid", "uname"],
  ["gid", "gname"],
] as const;

/** Number and name are one owner: both come from the same side. */
function withOneOwner(
  merged: Attributes,
  number: "uid" | "gid",
  name: "uname" | "gname",
  [base, local, remote]: readonly [Attributes, Attributes, Attributes],
): Attributes {
  const isOurs = local[number] !== base[number] || local[name] !== base[name];
  const { [number]: numberThere, [name]: nameThere } = isOurs ? local : remote;
  const { [number]: _, [name]: __, ...others } = merged;
  return {
    ...others,
    ...(numberThere === undefined ? {} : { [number]: numberThere }),
    ...(nameThere === undefined ? {} : { [name]: nameThere }),
  };
}

function mergeRecords(
  base: Record<string, unknown>,
  local: Record<string, unknown>,
  remote: Record<string, unknown>,
): Record<string, unknown> {
  const merged: Record<string, unknown> = {};
  for (const key of new Set([...Object.keys(local), ...Object.keys(remote)])) {
    const [b, l, r] = [base[key], local[key], remote[key]];
    let value = sameValue(b, l) ? r : l;
    if (key === "xattrs") {
      const names = mergeRecords(asRecord(b), asRecord(l), asRecord(r));
      value = Object.keys(names).length === 0 ? undefined : names;
    }
    if (value !== undefined) merged[key] = value;
  }
  return merged;
}

function asRecord(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

/** Compares two texts "seconds.nnnnnnnnn". */
function isLater(a: string, b: string): boolean {
  const [seconds, otherSeconds] = [Number.parseInt(a, 10), Number.parseInt(b, 10)];
  return seconds === otherSeconds ? a.slice(a.indexOf(".")) > b.slice(b.indexOf(".")) : seconds > otherSeconds;
}
