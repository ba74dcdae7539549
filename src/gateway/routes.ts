/** Finds the operation of a method and path, by the table of the contract. */
import { OPERATIONS, type OperationName } from "../contract/operations.ts";
import { invalid, notFound, ProblemError } from "./problems.ts";

export interface Route {
  readonly operation: OperationName;
  /** The values of the path for `{name}` in its template: ids are decoded, `path` (the rest) is still encoded. */
  readonly parameters: Readonly<Record<string, string>>;
}

const TABLE = (Object.keys(OPERATIONS) as OperationName[]).map((operation) => ({
  operation,
  method: OPERATIONS[operation].method,
  segments: OPERATIONS[operation].path.split("/"),
}));

/** Throws a 404 when no operation has the path, and a 405 when none has it with this method. */
export function findRoute(method: string, path: string): Route {
  const given = path.split("/");
  const allowed: string[] = [];
  for (const { operation, method: expected, segments } of TABLE) {
    const rest = segments.at(-1) === "{path}" ? segments.length - 1 : undefined;
    if (rest === undefined ? given.length !== segments.length : given.length <= rest) continue;
    const fixed = segments.slice(0, rest);
    if (!fixed.every((segment, index) => segment.startsWith("{") || segment === given[index])) continue;
    if (method !== expected) {
      allowed.push(...(expected === "GET" ? ["GET", "HEAD"] : [expected]));
      continue;
    }
    const parameters: Record<string, string> = rest === undefined ? {} : { path: given.slice(rest).join("/") };
    for (const [index, segment] of fixed.entries()) {
      if (!segment.startsWith("{")) continue;
      const name = segment.slice(1, -1);
      parameters[name] = decodeId(given[index] ?? "", name);
    }
    return { operation, parameters };
  }
  if (allowed.length === 0) throw notFound(`The gateway has nothing at ${path}.`);
  throw new ProblemError(405, `Expected ${allowed.join(", ")} here, got ${method}.`, {
    headers: { allow: allowed.join(", ") },
  });
}

export function decodeId(encoded: string, field = "nodeId"): string {
  try {
    return decodeURIComponent(encoded);
  } catch {
    throw invalid(field, `${field}: ${JSON.stringify(encoded)} is not percent-encoded UTF-8`);
  }
}
