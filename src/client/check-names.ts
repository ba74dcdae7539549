/** Checks names and paths that become part of a URL, before anything is sent. Throws "invalid". */
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

/** The path in the form of a URL: without its leading "/". The root is "". */
export function checkPath(operation: string, path: string): string {
  const names = splitPath(path);
  for (const name of names) checkName(operation, "path", name);
  return names.join("/");
}
