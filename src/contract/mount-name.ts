/** How a mount calls itself in the journal (`by.mount`): the machine and the folder, as far as a header takes them. */

const LENGTH_MAX = 128;

export function mountName(host: string, mountpoint: string): string {
  return encodeURI(`${host}:${mountpoint}`.toWellFormed()).slice(0, LENGTH_MAX);
}

/** For people: as it was before a header had to take it. */
export function showMountName(name: string): string {
  try {
    return decodeURI(name);
  } catch {
    // Cut off within a character.
    return name;
  }
}

/** As a person copies it from there; undefined: it is no name of a mount. */
export function parseMountName(shown: string): string | undefined {
  const at = shown.indexOf(":/");
  return at === -1 ? undefined : mountName(shown.slice(0, at), shown.slice(at + 1));
}
