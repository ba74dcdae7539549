/** The query of a URL: form-encoded, every name at most once. Text that is not UTF-8 is refused, not replaced. */
import { invalid } from "./problems.ts";

const NONE: Readonly<Record<string, string>> = {};

export function parseQuery(search: string): Readonly<Record<string, string>> {
  if (search === "") return NONE;
  const query = new Map<string, string>();
  for (const pair of search.split("&")) {
    if (pair === "") continue;
    const mark = pair.indexOf("=");
    const name = decode(mark === -1 ? pair : pair.slice(0, mark), "query");
    if (query.has(name)) throw invalid(name, `${name}: came twice`);
    query.set(name, mark === -1 ? "" : decode(pair.slice(mark + 1), name));
  }
  return Object.fromEntries(query);
}

function decode(text: string, field: string): string {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    throw invalid(field, `${field}: ${JSON.stringify(text)} is not percent-encoded UTF-8`);
  }
}
