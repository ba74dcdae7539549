import type { HttpRequest } from "../../../src/contract/http.ts";

/** Whether a request gives a node new content: by its bytes, or by reference to a version. */
export const isContentWrite = ({ method, path }: { readonly method: string; readonly path: string }): boolean =>
  method === "PUT" || (method === "POST" && path.endsWith("/versions"));

/** On its way, content by reference becomes something that the gateway does not know. */
export function refuseReferences(request: HttpRequest): HttpRequest {
  const value = request.body?.kind === "json" ? request.body.value : undefined;
  const isReference = typeof value === "object" && value !== null && "copyOf" in value;
  return isReference ? { ...request, path: "/v1/unknown" } : request;
}
