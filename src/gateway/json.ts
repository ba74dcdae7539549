/** JSON of bodies and metadata parts: parsed once, with a limit on its depth, and each key of an object only once. */
import { invalid } from "./problems.ts";

/** Code that walks deeper values, here or in a client, may overflow its stack. */
const DEPTH_MAX = 100;

/** Throws a 400 that names the field when the bytes are not UTF-8, not JSON, nested too deeply, or name a key twice. */
export function parseJson(chunks: readonly Uint8Array[], field: string): unknown {
  let text: string;
  let value: unknown;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(chunks));
    value = JSON.parse(text);
  } catch {
    throw invalid(field, `${field}: expected JSON in UTF-8`);
  }
  const { depth, keys } = marksOf(text);
  if (depth > DEPTH_MAX) throw invalid(field, `${field}: nested more than ${DEPTH_MAX} deep`);
  // Two readers may take different ones of two equal keys, the first or the last: for example a proxy that checks
  // requests, and this gateway.
  if (keys !== countKeys(value)) throw invalid(field, `${field}: an object has the same key twice`);
  return value;
}

/** Returns how deep arrays and objects are nested, and how many keys are written, in text that is JSON. */
function marksOf(text: string): { readonly depth: number; readonly keys: number } {
  let depth = 0;
  let deepest = 0;
  let keys = 0;
  let quoted = false;
  for (let at = 0; at < text.length; at++) {
    const mark = text[at];
    if (quoted && mark === "\\") at += 1;
    else if (mark === '"') quoted = !quoted;
    else if (quoted) continue;
    else if (mark === ":") keys += 1;
    else if (mark === "{" || mark === "[") deepest = Math.max(deepest, ++depth);
    else if (mark === "}" || mark === "]") depth -= 1;
  }
  return { depth: deepest, keys };
}

/** Only one of two equal keys is left in a parsed value. */
function countKeys(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  const values: unknown[] = Object.values(value);
  const own = Array.isArray(value) ? 0 : values.length;
  return values.reduce((sum: number, inner) => sum + countKeys(inner), own);
}
