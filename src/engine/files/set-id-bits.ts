/** Set-user-id and set-group-id bits: a write by an ordinary user takes them away, a folder hands the latter down. Pure. */
const S_ISUID = 0o4000;
const S_ISGID = 0o2000;
const S_IXGRP = 0o010;

/** The mode after a write by somebody without privileges; undefined when nothing changes. */
export function withoutPrivileges(mode: number | undefined): number | undefined {
  if (mode === undefined || (mode & (S_ISUID | S_ISGID)) === 0) return undefined;
  const setGid = (mode & S_IXGRP) !== 0 ? S_ISGID : 0;
  const kept = mode & ~(S_ISUID | setGid);
  return kept === mode ? undefined : kept;
}

/** Of a folder: what is made in it gets its group. */
export function isSetGroupId(mode = 0): boolean {
  return (mode & S_ISGID) !== 0;
}

/** The mode of a folder made in one of mode `parent`. */
export function handedDown(parent = 0, mode = 0): number {
  return isSetGroupId(parent) ? mode | S_ISGID : mode;
}
