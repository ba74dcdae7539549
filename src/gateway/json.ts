/** JSON as it comes in bodies and metadata parts: parsed once, with a limit on its depth. */
import { invalid } from "./problems.ts";

/** Whoever walks deeper values, here or in a client, may come to the end of its stack. */
const DEPTH_MAX = 100;

/** Throws a 400 naming the field when the bytes are not UTF-8, not JSON, or nested too deeply. */
export function parseJson(chunks: readonly Uint8Array[], field: string): unknown {
  let text: string;
  let value: unknown;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(chunks));
    value = JSON.parse(text);
  } catch {
    throw invalid(field, `${field}: expected JSON in UTF-8`);
  }
  if (depthOf(text) > DEPTH_MAX) throw invalid(field, `${field}: nested more than ${DEPTH_MAX} deep`);
  return value;
}

/** How deep arrays and objects lie in each other, in text that is JSON. */
function depthOf(text: string): number {
  let depth = 0;
  let deepest = 0;
  let quoted = false;
  for (let at = 0; at < text.length; at++) {
    const mark = text[at];
    if (quoted && mark === "\\") at += 1;
    else if (mark === '"') quoted = !quoted;
    else if (quoted) continue;
    else if (mark === "{" || mark === "[") deepest = Math.max(deepest, ++depth);
    else if (mark === "}" || mark === "]") depth -= 1;
  }
  return deepest;
}
