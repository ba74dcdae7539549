/** The effect of exactly one request of ours on a node: base after it. Pure. */
import { type Attributes, patchAttributes } from "../../contract/attributes.ts";
import type { Features } from "../../contract/features.ts";
import type { Attempt } from "../../metadata/attempts.ts";
import type { Base } from "../../metadata/nodes.ts";
import type { Request } from "../core/index.ts";

/** The start of a text that stands in for a head whose id is not known. No head of the gateway begins so. */
const STAND_IN = "superseded:";

/** True: the head is a stand-in, because a newer head from elsewhere hides the version that our content became. */
export const isStandIn = (head: string | null): boolean => head?.startsWith(STAND_IN) === true;

/** A node as an answer shows it, in the form of base, with the key of its latest change (null: none is told). */
interface Shown {
  readonly base: Base;
  readonly lastKey: string | null;
}

/** Base after exactly our request. `shown` is the node in the answer, which others may have changed since. */
export function effectOf(
  before: Base | null,
  { request, key }: Attempt<Request>,
  { base: shown, lastKey }: Shown,
  features: Features,
): Base {
  const common = { ...(before ?? shown), revision: shown.revision, position: shown.position };
  const { mtime: _, ...kept } = before?.attributes ?? {};
  const storable = (attributes: Attributes): Attributes => (features.attributes ? attributes : {});
  switch (request.do) {
    case "folder":
      return { ...common, parent: request.parent, name: request.name, attributes: storable(request.attributes) };
    case "upload":
    case "copy":
    case "content":
    case "reference": {
      // Without hashes, a later change of the node may have been one of its content.
      const isHeadOurs =
        features.hashes && request.hash !== null
          ? shown.hash === request.hash
          : shown.size === request.size && (!features.isFull || lastKey === key);
      // If a newer head from elsewhere hides our version, its id is not known.
      const head = isHeadOurs ? shown.head : `${STAND_IN}${key}`;
      const hash = request.hash ?? shown.hash;
      const place = "parent" in request ? { parent: request.parent, name: request.name } : {};
      // The mtime is the sent one, or there is none. Of the other attributes only the sent ones change.
      const attributes = patchAttributes(kept, storable(request.attributes));
      // If the shown content is ours, `shown` tells the time at which it was written.
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
