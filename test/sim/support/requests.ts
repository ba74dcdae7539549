/** What a request is for, by its method, path and body. */
import type { HttpRequest } from "../../../src/contract/http.ts";

type Call = Pick<HttpRequest, "method" | "path">;

export const isFileCreation = ({ method, path }: Call) => method === "POST" && path.startsWith("/v1/files/");

export const isFolderCreation = ({ method, path }: Call) => method === "POST" && path === "/v1/nodes";

export const isCreation = (call: Call) => isFileCreation(call) || isFolderCreation(call);

/** A new version by its bytes. */
export const isNewVersion = ({ method }: Call) => method === "PUT";

/** A new version by its bytes, or by reference to one that the gateway has. */
export const isContentWrite = (call: Call) =>
  isNewVersion(call) || (call.method === "POST" && call.path.endsWith("/versions"));

/** A change of place or attributes. */
export const isPatch = ({ method }: Call) => method === "PATCH";

export const isMove = ({ method, body }: HttpRequest) =>
  method === "PATCH" && body?.kind === "json" && Object.hasOwn(body.value as object, "name");

export const isExchange = ({ path }: Call) => path.endsWith("/exchange");

export const isDeletion = ({ method }: Call) => method === "DELETE";

/** Content by reference to a version of another node. */
export const isReference = ({ body }: HttpRequest) => body?.kind === "json" && "copyOf" in Object(body.value);

/** On its way, a reference becomes a request that the gateway does not know. */
export const refuseReferences = (request: HttpRequest): HttpRequest =>
  isReference(request) ? { ...request, path: "/v1/unknown" } : request;
