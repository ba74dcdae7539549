/** If-Match, If-None-Match and Range headers (RFC 9110), as far as the contract uses them. */
import { invalid } from "./problems.ts";

export const quoted = (tag: string | number) => `"${tag}"`;

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

/** Whether the header allows a change of what now has `tag` (undefined: nothing is there). No header allows all. */
export function matches(value: string | undefined, tag: string | number | undefined): boolean {
  if (value === undefined) return true;
  const condition = parseTags("If-Match", value);
  return tag !== undefined && (condition.any || condition.tags.includes(String(tag)));
}

/** Whether If-None-Match forbids: what is there has one of the tags. */
export function isKnown(value: string | undefined, tag: string | number | undefined): boolean {
  if (value === undefined || tag === undefined) return false;
  const condition = parseTags("If-None-Match", value);
  return condition.any || condition.tags.includes(String(tag));
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
