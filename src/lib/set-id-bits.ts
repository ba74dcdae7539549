/**
 * Set-user-id and set-group-id bits. A write by an ordinary user clears them. New folders inherit set-group-id. Pure.
 */
const S_ISUID = 0o4000;
const S_ISGID = 0o2000;
const S_IXGRP = 0o010;

/** The mode after a write by a user without privileges. Undefined: it does not change. */
export function withoutPrivileges(mode: number | undefined): number | undefined {
  if (mode === undefined || (mode & (S_ISUID | S_ISGID)) === 0) return undefined;
  const setGid = (mode & S_IXGRP) !== 0 ? S_ISGID : 0;
  const kept = mode & ~(S_ISUID | setGid);
  return kept === mode ? undefined : kept;
}

/** True if new files and folders in this folder get its group. */
export function isSetGroupId(mode = 0): boolean {
  return (mode & S_ISGID) !== 0;
}

/** The mode of a folder that is made in a folder of mode `parent`. */
export function handedDown(parent = 0, mode = 0): number {
  return isSetGroupId(parent) ? mode | S_ISGID : mode;
}
