/** The effect of exactly one request of ours on a node: base after it. Pure. */
import { type Attributes, patchAttributes } from "../../contract/attributes.ts";
import type { Features } from "../../contract/features.ts";
import type { Attempt } from "../../metadata/attempts.ts";
import type { Base } from "../../metadata/nodes.ts";
import type { Request } from "../core/index.ts";

/** The start of a text that stands for a head whose id is not known. It equals no head of the gateway. */
const STAND_IN = "superseded:";

/** A head is such a stand-in when a newer head from elsewhere hides the version that our content became. */
export const isStandIn = (head: string | null): boolean => head?.startsWith(STAND_IN) === true;

/** A node as an answer tells it: as base would describe it, and the key of its latest change. Null: none, or not told. */
export interface Shown {
  readonly base: Base;
  readonly lastKey: string | null;
}

/** Base after exactly our request. The node may have been changed since. */
export function effectOf(
  before: Base | null,
  { request, key }: Attempt<Request>,
  { base: shown, lastKey }: Shown,
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
      // Without hashes, a later change of the node may have been one of its content.
      const isHeadOurs =
        features.hashes && request.hash !== null
          ? shown.hash === request.hash
          : shown.size === request.size && (!features.isFull || lastKey === key);
      // A newer head from elsewhere hides the id of ours: a stand-in that equals no head.
      const head = isHeadOurs ? shown.head : `${STAND_IN}${key}`;
      const hash = request.hash ?? shown.hash;
      const place = "parent" in request ? { parent: request.parent, name: request.name } : {};
      // The mtime is that of the content, or there is none. Of the other attributes only the sent ones change.
      const attributes = patchAttributes(kept, held(request.attributes));
      // The content is ours, whatever else was changed. So `shown` tells when it was written.
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
