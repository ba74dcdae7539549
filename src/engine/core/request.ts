/** The requests that the plan may ask for, in the shape in which an attempt stores them. */
import { z } from "zod";
import { attributes, attributesPatch } from "../../contract/attributes.ts";
import { OPERATIONS } from "../../contract/operations.ts";
import { type Scope, UPLOAD_SCOPES } from "../../contract/scopes.ts";

const bytes = { hash: z.string(), size: z.number().int().min(0), attributes };

const request = z.discriminatedUnion("do", [
  z.object({ do: z.literal("folder"), parent: z.string(), name: z.string(), attributes }),
  /** A new file with content. */
  z.object({ do: z.literal("upload"), parent: z.string(), name: z.string(), ...bytes }),
  /** A new file whose content is a version that the gateway has. */
  z.object({
    do: z.literal("copy"),
    parent: z.string(),
    name: z.string(),
    copyOf: z.string(),
    version: z.string(),
    ...bytes,
    hash: z.string().nullable(),
  }),
  /** A new version. */
  z.object({ do: z.literal("content"), nodeId: z.string(), ifHead: z.string().nullable(), ...bytes }),
  /** A new version whose content is a version that the gateway has. */
  z.object({
    do: z.literal("reference"),
    nodeId: z.string(),
    ifHead: z.string().nullable(),
    copyOf: z.string(),
    version: z.string(),
    ...bytes,
    hash: z.string().nullable(),
  }),
  /** Move, rename, attributes. */
  z.object({
    do: z.literal("patch"),
    nodeId: z.string(),
    ifRevision: z.number().int(),
    parent: z.string().optional(),
    name: z.string().optional(),
    attributes: attributesPatch.optional(),
  }),
  /** Two nodes swap places: this node goes to this place, the other one goes from there to where this node was. */
  z.object({
    do: z.literal("exchange"),
    nodeId: z.string(),
    ifRevision: z.number().int(),
    parent: z.string(),
    name: z.string(),
    with: z.string(),
    withRevision: z.number().int(),
    withParent: z.string(),
    withName: z.string(),
  }),
  z.object({ do: z.literal("delete"), nodeId: z.string(), ifRevision: z.number().int() }),
]);

export type Request = z.infer<typeof request>;

/** Throws a ZodError when the stored value is no request. */
export function parseRequest(value: unknown): Request {
  return request.parse(value);
}

/** The scopes that a request of this kind needs. */
export function scopesOf(kind: Request["do"]): readonly Scope[] {
  switch (kind) {
    case "folder":
    case "upload":
    case "copy":
      return UPLOAD_SCOPES;
    case "reference":
      return OPERATIONS.writeReference.scopes;
    case "content":
    case "patch":
    case "exchange":
      return ["node.node.update"];
    case "delete":
      return ["node.file.delete"];
  }
}
