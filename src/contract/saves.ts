/**
 * The saves of a linked file: ids, each made of its content and of the save it came in the place of, so that whoever
 * does the same thing gives it the same id. A link names its own, then others that led to it. They tell what came after
 * what, which times would not: what somebody wrote who had not seen the other came neither before nor after that.
 */
import { createHash } from "node:crypto";
import type { Attributes } from "./attributes.ts";

export type Link = NonNullable<Attributes["link"]>;

/** A name that is further behind is taken for another file until it is brought up. */
const REMEMBERED = 16;
const DIGITS = 12;

/** Those of content that was written in the place of what `before` led to; of nothing that is known, without. */
export function savesOfContent(hash: string, before: readonly string[] = []): readonly string[] {
  const digest = createHash("sha256")
    .update(`${hash}\n${before[0] ?? ""}`)
    .digest("hex");
  return [`${hash.slice(0, DIGITS)}.${digest.slice(0, DIGITS)}`, ...before.slice(0, REMEMBERED - 1)];
}

/** Whether it is a save of this content. */
export const isSaveOf = (save: string | undefined, hash: string) => contentOf(save) === hash.slice(0, DIGITS);

/** Of which content it is a save. */
const contentOf = (save: string | undefined) => save?.slice(0, save.indexOf("."));

/** A merge of attributes leaves the saves of what was there before: who named none wrote in the place of that. */
export function savesOfLink({ hash, saves }: Link): readonly string[] {
  return saves !== undefined && isSaveOf(saves[0], hash) ? saves : savesOfContent(hash, saves);
}

/** Of content that both led to, in the first place `saves`. Of many, the last of either is among those that are named. */
export function savesOfBoth([last, ...saves]: readonly string[], [other, ...others]: readonly string[]): string[] {
  // What led to the one is not one more way in which that came about.
  const own = other !== undefined && saves.includes(other) ? [last] : [last, other];
  const all = [...own, ...saves, ...others].filter((save) => save !== undefined);
  return [...new Set(all)].slice(0, REMEMBERED);
}

/** The link of a node that gets this content in the place of what its link says so far. */
export function linkOfContent(group: string, hash: string, saves: readonly string[], replaced: Link | undefined): Link {
  const before = replaced?.group === group ? savesOfLink(replaced) : [];
  return { group, hash, saves: savesOfBoth(saves, before) };
}

/** The ways in which the content itself came about, as far as they are known: they lead the list. */
function ownOf(all: readonly string[]): readonly string[] {
  const end = all.findIndex((save) => contentOf(save) !== contentOf(all[0]));
  return end < 0 ? all : all.slice(0, end);
}

/** What the other content is against what is shown. */
export function orderOfSaves(shown: readonly string[], other: readonly string[]): "behind" | "newer" | "apart" {
  const isBehind = ownOf(other).some((save) => shown.includes(save));
  const isNewer = ownOf(shown).some((save) => other.includes(save));
  if (isBehind || isNewer) return decide(isBehind, isNewer, shown, other);
  // Not what both know it was once: who went back to that had seen what came after it.
  const ledTo = (all: readonly string[], [own]: readonly string[], known: readonly string[]) =>
    own !== undefined && all.some((save) => contentOf(save) === contentOf(own) && !known.includes(save));
  return decide(ledTo(shown, other, other), ledTo(other, shown, shown), shown, other);
}

function decide(isBehind: boolean, isNewer: boolean, [shown = ""]: readonly string[], [other = ""]: readonly string[]) {
  // Each was put in the place of the other by somebody who knew both: everybody takes the same one.
  if (isBehind && isNewer) return other > shown ? "newer" : "behind";
  return isBehind ? "behind" : isNewer ? "newer" : "apart";
}
