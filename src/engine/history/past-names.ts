/** Names of versions and deleted nodes, with moment, author and extension. Names of versions sort by number. */
import type { Author, Version } from "../../contract/resources.ts";

/**
 * `0003 2026-11-27 10.22.31 ada.txt`, in the time zone of this machine. `last`: the largest number of the list, which
 * decides how many digits all of them have.
 */
export function versionName({ number, createdAt, by }: Version, name: string, last: number): string {
  const digits = Math.max(4, String(last).length);
  return `${String(number).padStart(digits, "0")} ${stampOf(createdAt, by)}${extensionOf(name)}`;
}

/**
 * `report (2026-11-27 10.22.31 ada).txt`; if that is taken, `report (2026-11-27 10.22.31 ada) 2.txt`. Adds the name to
 * `taken`.
 */
export function deletedName(
  name: string,
  at: string | undefined,
  by: Author | null | undefined,
  taken: Set<string>,
): string {
  const extension = extensionOf(name);
  const stem = extension === "" ? name : name.slice(0, -extension.length);
  const stamp = at === undefined ? "deleted" : stampOf(at, by);
  let free = `${stem} (${stamp})${extension}`;
  for (let count = 2; taken.has(free); count += 1) free = `${stem} (${stamp}) ${count}${extension}`;
  taken.add(free);
  return free;
}

/** The reverse of `deletedName`: the name that the deleted node had. Any other name is returned as it is. */
export function nameBeforeDeletion(shown: string): string {
  const [, stem, extension = ""] = DELETED.exec(shown) ?? [];
  return stem === undefined ? shown : `${stem}${extension}`;
}

const DELETED = /^(.*) \((?:deleted|\d{4}-\d\d-\d\d \d\d\.\d\d\.\d\d.*)\)(?: \d+)?(\.[^./]{1,16})?$/s;

function stampOf(moment: string, by: Author | null | undefined): string {
  const at = new Date(moment);
  const two = (number: number) => String(number).padStart(2, "0");
  const date = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  const time = `${two(at.getHours())}.${two(at.getMinutes())}.${two(at.getSeconds())}`;
  // The account's name becomes a part of a file name. So a slash is replaced, and so is a control character, which a
  // terminal may take for a command.
  const account = (by?.account ?? "").replaceAll(/[/\p{Cc}]/gu, "_").slice(0, 40);
  return account === "" ? `${date} ${time}` : `${date} ${time} ${account}`;
}

function extensionOf(name: string): string {
  return /[^.](\.[^./]{1,16})$/.exec(name)?.[1] ?? "";
}
