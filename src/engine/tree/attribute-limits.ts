/** How much of a node's attributes is kept here: what the kernel can hand out, and more than may be set (contract/attributes.ts), for gateways and nodes without that limit. */
import { attributes as schema } from "../../contract/attributes.ts";
import type { Node } from "../../contract/resources.ts";

export const VALUE_BYTES_MAX = 64 * 1024;
/** Names, and values as they are stored. */
const ALL_BYTES_MAX = 256 * 1024;

const VALUE_TEXT_MAX = Math.ceil(VALUE_BYTES_MAX / 3) * 4;
/** All of these but the extended ones are small. */
const KNOWN: ReadonlySet<string> = new Set(Object.keys(schema.shape));

/**
 * The node without what is too much of its extended attributes, and of those nobody here knows. At the gateway it stays
 * as it is, for a change sends only what is another here.
 */
export function withinLimits(node: Node): Node {
  const { xattrs = {}, ...others } = node.attributes;
  let room = ALL_BYTES_MAX;
  const isTaken = (name: string, text: string) => {
    const bytes = name.length + text.length;
    if (bytes > room) return false;
    room -= bytes;
    return true;
  };
  const extended = Object.entries(xattrs);
  const named = Object.entries(others);
  const takenExtended = extended.filter(([name, text]) => text.length <= VALUE_TEXT_MAX && isTaken(name, text));
  const taken = named.filter(([name, value]) => KNOWN.has(name) || isTaken(name, JSON.stringify(value) ?? ""));
  if (takenExtended.length === extended.length && taken.length === named.length) return node;
  return { ...node, attributes: { ...Object.fromEntries(taken), xattrs: Object.fromEntries(takenExtended) } };
}
