/**
 * What a request of ours has made of a node, and nothing else: base after it. Pure.
 */
import { type Attributes, patchAttributes } from "../../contract/attributes.ts";
import type { Features } from "../../contract/features.ts";
import type { Attempt } from "../../metadata/attempts.ts";
import type { Base } from "../../metadata/nodes.ts";
import type { Request } from "../core/index.ts";

/** Begins what stands for a head whose id is not known. Equals no head of the gateway. */
const STAND_IN = "superseded:";

/** Somebody's newer head hides the version that content of ours became. */
export const isStandIn = (head: string | null): boolean => head?.startsWith(STAND_IN) === true;

/** Base after exactly our request, when the node (`shown`, as the base it would be) may have been changed since. */
export function effectOf(
  before: Base | null,
  { request, key }: Attempt<Request>,
  shown: Base,
  features: Features,
): Base {
  const common = { ...(before ?? shown), revision: shown.revision, position: shown.position };
  const { mtime: _, ...kept } = before?.attributes ?? {};
  const held = (attributes: Attributes): Attributes => (features.attributes ? attributes : {});
  switch (request.do) {
    case "folder":
      return { ...common, parent: request.parent, name: request.name, attributes: held(request.attributes) };
    case "upload":
    case "copy":
    case "content":
    case "reference": {
      const isHeadOurs = request.hash === null || !features.hashes || shown.hash === request.hash;
      // Somebody's newer head hides the id of ours: a stand-in that equals no head.
      const head = isHeadOurs ? shown.head : `${STAND_IN}${key}`;
      const hash = request.hash ?? shown.hash;
      const place = "parent" in request ? { parent: request.parent, name: request.name } : {};
      // The content's own mtime, or none; of the rest only what was sent is changed.
      const attributes = patchAttributes(kept, held(request.attributes));
      // The content is ours, whatever else was changed: when it was written, it says.
      const modifiedAt = isHeadOurs && before !== null ? shown.modifiedAt : common.modifiedAt;
      return { ...common, ...place, head, hash, size: request.size, attributes, modifiedAt };
    }
    case "exchange":
      return { ...common, parent: request.parent, name: request.name };
    case "patch": {
      const attributes = request.attributes
        ? patchAttributes(common.attributes, request.attributes)
        : common.attributes;
      return { ...common, parent: request.parent ?? common.parent, name: request.name ?? common.name, attributes };
    }
    case "delete":
      return common;
  }
}
