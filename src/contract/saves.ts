/**
 * The saves of a hard-linked file. A save is an id made of its content and of the save that it replaced, so that two
 * mounts that do the same thing give it the same id. A link lists its own save first, then earlier ones that led to it.
 * These lists show the order of contents, which times cannot show. A save whose author had not seen another save came
 * neither before nor after that one.
 */
import { createHash } from "node:crypto";
import type { Attributes } from "./attributes.ts";

export type Link = NonNullable<Attributes["link"]>;

/** Length of a list. A name that is more saves behind counts as another file, until it is brought up to date. */
const REMEMBERED = 16;
const DIGITS = 12;

/**
 * The saves of content that replaced the content of `before`. Without `before`, nothing of the replaced content is
 * known.
 */
export function savesOfContent(hash: string, before: readonly string[] = []): readonly string[] {
  const digest = createHash("sha256")
    .update(`${hash}\n${before[0] ?? ""}`)
    .digest("hex");
  return [`${hash.slice(0, DIGITS)}.${digest.slice(0, DIGITS)}`, ...before.slice(0, REMEMBERED - 1)];
}

/** True if it is a save of this content. */
export const isSaveOf = (save: string | undefined, hash: string) => contentOf(save) === hash.slice(0, DIGITS);

/** The content of a save. */
const contentOf = (save: string | undefined) => save?.slice(0, save.indexOf("."));

/**
 * The saves of a link. A writer that gives a new hash without saves leaves the earlier saves in place, because
 * attributes are merged. Then the new save is put before them.
 */
export function savesOfLink({ hash, saves }: Link): readonly string[] {
  return saves !== undefined && isSaveOf(saves[0], hash) ? saves : savesOfContent(hash, saves);
}

/**
 * The saves of content that both lists led to, `saves` before `others`. If there are many, the last save of either list
 * is among those kept.
 */
export function savesOfBoth([last, ...saves]: readonly string[], [other, ...others]: readonly string[]): string[] {
  // A save that led to the other one is not another way in which the content came about.
  const own = other !== undefined && saves.includes(other) ? [last] : [last, other];
  const all = [...own, ...saves, ...others].filter((save) => save !== undefined);
  return [...new Set(all)].slice(0, REMEMBERED);
}

/** The link of a node that gets this content in the place of the content of its present link. */
export function linkOfContent(group: string, hash: string, saves: readonly string[], replaced: Link | undefined): Link {
  const before = replaced?.group === group ? savesOfLink(replaced) : [];
  return { group, hash, saves: savesOfBoth(saves, before) };
}

/** The saves of the present content itself, as far as they are known. They lead the list. */
function ownOf(all: readonly string[]): readonly string[] {
  const end = all.findIndex((save) => contentOf(save) !== contentOf(all[0]));
  return end < 0 ? all : all.slice(0, end);
}

/** Tells whether the other content is behind the shown one, newer, or apart from it. */
export function orderOfSaves(shown: readonly string[], other: readonly string[]): "behind" | "newer" | "apart" {
  const isBehind = ownOf(other).some((save) => shown.includes(save));
  const isNewer = ownOf(shown).some((save) => other.includes(save));
  if (isBehind || isNewer) return decide(isBehind, isNewer, shown, other);
  // Content that both once knew does not count: a writer that went back to it had seen the contents after it.
  const ledTo = (all: readonly string[], [own]: readonly string[], known: readonly string[]) =>
    own !== undefined && all.some((save) => contentOf(save) === contentOf(own) && !known.includes(save));
  return decide(ledTo(shown, other, other), ledTo(other, shown, shown), shown, other);
}

function decide(isBehind: boolean, isNewer: boolean, [shown = ""]: readonly string[], [other = ""]: readonly string[]) {
  // Each replaced the other, by writers that knew both. All mounts choose the same one.
  if (isBehind && isNewer) return other > shown ? "newer" : "behind";
  return isBehind ? "behind" : isNewer ? "newer" : "apart";
}
