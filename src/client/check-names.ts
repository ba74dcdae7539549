/** Names and paths that become part of a URL, checked before anything is sent. */
import { nameProblem, splitPath } from "../contract/names.ts";
import { RemoteError } from "./errors.ts";

export function checkName(operation: string, field: string, name: string): void {
  const problem = nameProblem(name);
  if (problem === undefined) return;
  throw new RemoteError("invalid", `${operation}: ${field}: it ${problem}: ${JSON.stringify(name)}`, {
    field,
    isUnsent: true,
  });
}

/** The path as it goes into a URL: without its leading "/"; the root's is "". */
export function checkPath(operation: string, path: string): string {
  const names = splitPath(path);
  for (const name of names) checkName(operation, "path", name);
  return names.join("/");
}
