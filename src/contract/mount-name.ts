/** The name of a mount in the journal (`by.mount`): its machine and its folder, in a form that fits a header. */

const LENGTH_MAX = 128;

export function mountName(host: string, mountpoint: string): string {
  return encodeURI(`${host}:${mountpoint}`.toWellFormed()).slice(0, LENGTH_MAX);
}

/** The name for people, as it was before it was encoded for a header. */
export function showMountName(name: string): string {
  try {
    return decodeURI(name);
  } catch {
    // The name was cut off within a character.
    return name;
  }
}

/** Reads a name as a person copies it from the output. Undefined: it is not the name of a mount. */
export function parseMountName(shown: string): string | undefined {
  const at = shown.indexOf(":/");
  return at === -1 ? undefined : mountName(shown.slice(0, at), shown.slice(at + 1));
}
