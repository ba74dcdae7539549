/**
 * Limits of the attributes that are kept here: those of the kernel. They are above the limits of the contract
 * (contract/attributes.ts), because some gateways, and some nodes, do not keep to these.
 */
import { attributes as schema } from "../contract/attributes.ts";
import type { Node } from "../contract/resources.ts";

export const VALUE_BYTES_MAX = 64 * 1024;
/** Bytes of all names and of all values, as they are stored. */
const ALL_BYTES_MAX = 256 * 1024;

const VALUE_TEXT_MAX = Math.ceil(VALUE_BYTES_MAX / 3) * 4;
/** The attributes of the schema. All except the extended ones are small. */
const KNOWN: ReadonlySet<string> = new Set(Object.keys(schema.shape));

/**
 * The node without the extended and unknown attributes that exceed the limits. The gateway keeps them, because a change
 * sends only differences.
 */
export function withinLimits(node: Node): Node {
  const { xattrs = {}, ...others } = node.attributes;
  let room = ALL_BYTES_MAX;
  const fits = (name: string, text: string) => {
    const bytes = name.length + text.length;
    if (bytes > room) return false;
    room -= bytes;
    return true;
  };
  const extended = Object.entries(xattrs);
  const named = Object.entries(others);
  const fittingExtended = extended.filter(([name, text]) => text.length <= VALUE_TEXT_MAX && fits(name, text));
  const fitting = named.filter(([name, value]) => KNOWN.has(name) || fits(name, JSON.stringify(value) ?? ""));
  if (fittingExtended.length === extended.length && fitting.length === named.length) return node;
  return { ...node, attributes: { ...Object.fromEntries(fitting), xattrs: Object.fromEntries(fittingExtended) } };
}
