/**
 * How much of a node's attributes is kept here: what the kernel can hand out. That is more than may be set
 * (contract/attributes.ts), because some gateways and nodes do not have that limit.
 */
import { attributes as schema } from "../contract/attributes.ts";
import type { Node } from "../contract/resources.ts";

export const VALUE_BYTES_MAX = 64 * 1024;
/** In bytes: the names, and the values as they are stored. */
const ALL_BYTES_MAX = 256 * 1024;

const VALUE_TEXT_MAX = Math.ceil(VALUE_BYTES_MAX / 3) * 4;
/** The attributes of the schema. All of them except the extended ones are small. */
const KNOWN: ReadonlySet<string> = new Set(Object.keys(schema.shape));

/**
 * The node without extended attributes beyond the limits, and without unknown attributes beyond the limits. The gateway
 * keeps them: a change sends only what differs here.
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
