/** Set-user-id and set-group-id bits, which a write by an ordinary user takes away. Pure. */
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
