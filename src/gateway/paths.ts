/** Paths of URLs and queries: decoded once, every name checked. They are never used on a disk. */
import { nameProblem, splitPath } from "../contract/names.ts";
import { invalid } from "./problems.ts";

function checkNames(names: readonly string[]): void {
  for (const name of names) {
    const problem = nameProblem(name);
    if (problem !== undefined) throw invalid("path", `path: the name ${JSON.stringify(name)} ${problem}`);
  }
}

/**
 * Returns the names of an encoded path. "%2F" separates names as "/" does, because no name contains "/", and clients
 * generated from the OpenAPI document encode it.
 */
export function decodePath(encoded: string): string[] {
  let names: string[];
  try {
    names = splitPath(encoded.replace(/%2f/gi, "/")).map(decodeURIComponent);
  } catch {
    throw invalid("path", `path: ${JSON.stringify(encoded)} is not percent-encoded UTF-8`);
  }
  checkNames(names);
  return names;
}

/** Returns the names of a path in plain text. */
export function parsePath(path: string): string[] {
  const names = splitPath(path);
  checkNames(names);
  return names;
}
