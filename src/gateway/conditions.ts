/** If-Match, If-None-Match and Range headers (RFC 9110), as far as the contract uses them. */
import { hash } from "node:crypto";
import type { Node } from "../contract/resources.ts";
import { invalid } from "./problems.ts";

/**
 * The ETag of an answer that is a node. The revision alone is not enough: the path also changes with the folders above,
 * and another node with the same revision may be found at the same path.
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

/**
 * True if If-Match allows a change of something with these tags (none: it does not exist). Without the header every
 * change is allowed.
 */
export function matches(value: string | undefined, ...tags: readonly string[]): boolean {
  return value === undefined || hasOne(parseTags("If-Match", value), tags);
}

/** True if If-None-Match forbids it: the present thing has one of its tags. */
export function isKnown(value: string | undefined, ...tags: readonly string[]): boolean {
  return value !== undefined && tags.length > 0 && hasOne(parseTags("If-None-Match", value), tags);
}

type ByteRange = { readonly start: number; readonly end: number };

/**
 * The single requested range of bytes, [start, end). "whole" when there is no range, when there are several, or when it
 * has a form that this gateway does not know (RFC 9110 §14.2 allows the whole answer). "unsatisfiable" when the range
 * contains no byte.
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
