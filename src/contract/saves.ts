/**
 * The saves of a linked file: each is an id, made of its content and the save it came in the place of, so that whoever
 * does the same thing gives it the same id. A link names those of its content, the last first. What another name has is
 * older if its save is among them; else nobody who wrote this has seen that. Times would not tell it.
 */
import { createHash } from "node:crypto";
import type { Attributes } from "./attributes.ts";

export type Link = NonNullable<Attributes["link"]>;
/** A name that is further behind is taken for another file until it is brought up. */
const REMEMBERED = 16;

/** Of content that came in the place of what `before` made; of nothing that is known, without. */
export function savesOfContent(hash: string, before: readonly string[] = []): readonly string[] {
  const id = createHash("sha256")
    .update(`${hash}\n${before[0] ?? ""}`)
    .digest("hex")
    .slice(0, 16);
  return [id, ...before.slice(0, REMEMBERED - 1)];
}

export const savesOfLink = ({ hash, saves }: Link): readonly string[] => saves ?? savesOfContent(hash);

/** Of content that came about in both ways. Of many, the last of either is among those that are named. */
export function savesOfBoth([last, ...saves]: readonly string[], [other, ...others]: readonly string[]): string[] {
  const all = [last, other, ...saves, ...others].filter((save) => save !== undefined);
  return [...new Set(all)].slice(0, REMEMBERED);
}

/** The link of a node that gets this content in the place of what its link says so far. */
export function linkOfContent(group: string, hash: string, saves: readonly string[], replaced: Link | undefined): Link {
  const before = replaced?.group === group ? savesOfLink(replaced) : [];
  return { group, hash, saves: savesOfBoth(saves, before) };
}
