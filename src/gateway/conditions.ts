/** If-Match, If-None-Match and Range headers (RFC 9110), as far as the contract uses them. */
import { hash } from "node:crypto";
import type { Node } from "../contract/resources.ts";
import { invalid } from "./problems.ts";

/**
 * Of an answer that is a node. The path in it changes with the folders above, which the revision does not; and at one
 * path another node may be found whose revision is the same.
 */
export function nodeTag({ id, revision, path }: Pick<Node, "id" | "revision" | "path">): string {
  return `${revision}-${hash("sha256", `${id} ${path}`, "base64url").slice(0, 12)}`;
}

export const quoted = (tag: string) => `"${tag}"`;

type Condition = { readonly any: true } | { readonly any: false; readonly tags: readonly string[] };

function parseTags(header: string, value: string): Condition {
  if (value.trim() === "*") return { any: true };
  const tags: string[] = [];
  for (const part of value.split(",")) {
    const tag = /^\s*(?:W\/)?"([^"]*)"\s*$/.exec(part)?.[1];
    if (tag === undefined) throw invalid(header, `${header}: expected * or quoted tags such as "7", got ${value}`);
    tags.push(tag);
  }
  return { any: false, tags };
}

const hasOne = (condition: Condition, tags: readonly string[]) =>
  tags.length > 0 && (condition.any || tags.some((tag) => condition.tags.includes(tag)));

/** Whether the header allows a change of what now has these tags (none: nothing is there). No header allows all. */
export function matches(value: string | undefined, ...tags: readonly string[]): boolean {
  return value === undefined || hasOne(parseTags("If-Match", value), tags);
}

/** Whether If-None-Match forbids: what is there has one of its tags. */
export function isKnown(value: string | undefined, ...tags: readonly string[]): boolean {
  return value !== undefined && tags.length > 0 && hasOne(parseTags("If-None-Match", value), tags);
}

export type ByteRange = { readonly start: number; readonly end: number };

/**
 * The one range of bytes asked for, [start, end). "whole" when none is, or several, or in a way this
 * gateway does not know (RFC 9110 §14.2 lets it answer all); "unsatisfiable" when nothing lies in it.
 */
export function parseRange(value: string | undefined, size: number): ByteRange | "whole" | "unsatisfiable" {
  const match = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(value?.trim() ?? "");
  if (match === null) return "whole";
  const [, first = "", last = ""] = match;
  if (first === "") {
    if (last === "") return "whole";
    const length = Math.min(Number(last), size);
    return length === 0 ? "unsatisfiable" : { start: size - length, end: size };
  }
  const start = Number(first);
  const end = last === "" ? size : Math.min(Number(last) + 1, size);
  if (last !== "" && Number(last) < start) return "whole";
  return start >= size ? "unsatisfiable" : { start, end };
}
