/** Which operation a method and path mean, by the contract's table. */
import { LATER } from "../contract/later.ts";
import { OPERATIONS, type OperationName } from "../contract/operations.ts";
import { invalid, notFound, ProblemError } from "./problems.ts";

export interface Route {
  readonly operation: OperationName;
  /** Decoded; empty where the path has none. */
  readonly nodeId: string;
  /** Still encoded; empty where the path has none. */
  readonly path: string;
}

const TABLE = (Object.keys(OPERATIONS) as OperationName[]).map((operation) => ({
  operation,
  method: OPERATIONS[operation].method,
  segments: OPERATIONS[operation].path.split("/"),
}));

/** 404 when no operation has the path, 405 when none has it with this method. */
export function findRoute(method: string, path: string): Route {
  const given = path.split("/");
  const allowed: string[] = [];
  for (const { operation, method: expected, segments } of TABLE) {
    const rest = segments.at(-1) === "{path}" ? segments.length - 1 : undefined;
    if (rest === undefined ? given.length !== segments.length : given.length <= rest) continue;
    const fixed = segments.slice(0, rest);
    if (!fixed.every((segment, index) => segment === "{nodeId}" || segment === given[index])) continue;
    if (method !== expected) {
      allowed.push(...(expected === "GET" ? ["GET", "HEAD"] : [expected]));
      continue;
    }
    const id = segments.indexOf("{nodeId}");
    return {
      operation,
      nodeId: id === -1 ? "" : decodeId(given[id] ?? ""),
      path: rest === undefined ? "" : given.slice(rest).join("/"),
    };
  }
  if (allowed.length === 0) {
    const later = LATER.find((resource) => path === resource.path || path.startsWith(`${resource.path}/`));
    if (later !== undefined) throw notFound(`This gateway does not serve ${later.what} yet.`);
    throw notFound(`The gateway has nothing at ${path}.`);
  }
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
