/**
 * The attributes that a node carries for file systems (docs/gateway/api.md). All are optional: the reader computes a
 * default for an absent one. Unknown keys are kept as they are.
 */
import { z } from "zod";

const whole = (max: number) => z.number().int().min(0).max(max);
const timeText = z.string().regex(/^-?\d{1,15}\.\d{9}$/, 'expected "seconds.nnnnnnnnn"');
/** A name that fits a line of the machine's account files. */
const accountName = z
  .string()
  .min(1)
  .max(256)
  .regex(/^[^:\n]*$/, "expected one line without a colon");

/** Kinds of node that are neither plain files nor folders. Such a node has empty content. */
export const specialType = z.enum(["symlink", "fifo", "socket", "block", "character"]);

const fields = {
  mode: whole(0o7777).describe("Permission bits, as a number: 420 is 0644"),
  uid: whole(0xffff_ffff).describe("The owner's number on the machine where it was set"),
  uname: accountName.describe(
    "The owner's name on that machine. A machine that knows this name uses it instead of uid: the two are set or removed together",
  ),
  gid: whole(0xffff_ffff).describe("The group's number on the machine where it was set"),
  gname: accountName.describe("The group's name on that machine: it is for gid what uname is for uid"),
  rdev: whole(0xffff_ffff),
  mtime: timeText.describe(
    "Seconds with nine decimal digits. It belongs to the version: content written without one gets the version's createdAt",
  ),
  btime: timeText.describe("The time of creation, in seconds with nine decimal digits"),
  type: specialType.describe("The kind of a node that is neither a plain file nor a folder; its content is empty"),
  target: z.string().min(1).max(4095).describe("The target of a symlink"),
  link: z
    .object({
      group: z.string().min(1).max(128),
      hash: z.string().max(128),
      saves: z
        .array(z.string().min(1).max(64))
        .min(1)
        .max(64)
        .optional()
        .describe(
          "Ids of the saves that led to this content, its own first. A name of the group whose own save is among them has older content",
        ),
    })
    .describe("Hard links: the group that the names of one inode share, and the content last written to it"),
  xattrs: z.record(z.string().min(1).max(255), z.base64()).describe("Extended attributes: name to value in base64"),
};

export const attributes = z
  .looseObject({
    mode: fields.mode.optional(),
    uid: fields.uid.optional(),
    uname: fields.uname.optional(),
    gid: fields.gid.optional(),
    gname: fields.gname.optional(),
    rdev: fields.rdev.optional(),
    mtime: fields.mtime.optional(),
    btime: fields.btime.optional(),
    type: fields.type.optional(),
    target: fields.target.optional(),
    link: fields.link.optional(),
    xattrs: fields.xattrs.optional(),
  })
  .meta({
    id: "Attributes",
    description:
      "Attributes that file systems keep with a node. All are optional. Unknown keys are kept as they are. Unknown keys and xattrs together may have 64 KiB of JSON; more is 413",
  });

export type Attributes = z.infer<typeof attributes>;

/** A merge patch (RFC 7396): keys replace, null removes. `xattrs` merges by name in the same way. */
export const attributesPatch = z
  .looseObject({
    mode: fields.mode.nullish(),
    uid: fields.uid.nullish(),
    uname: fields.uname.nullish(),
    gid: fields.gid.nullish(),
    gname: fields.gname.nullish(),
    rdev: fields.rdev.nullish(),
    mtime: fields.mtime.nullish(),
    btime: fields.btime.nullish(),
    type: fields.type.nullish(),
    target: fields.target.nullish(),
    link: fields.link.nullish(),
    xattrs: z.record(z.string().min(1).max(255), z.base64().nullable()).nullish(),
  })
  .meta({ id: "AttributesPatch", description: "A merge patch (RFC 7396): keys replace, null removes" });

export type AttributesPatch = z.infer<typeof attributesPatch>;

/** The limit for attributes that have no limit of their own, in bytes of JSON. */
export const ATTRIBUTES_BYTES_MAX = 64 * 1024;

/**
 * The number of bytes if a change from `before` to `after` makes the attributes too large; undefined if the change is
 * allowed. Only growth is refused, so that attributes which an older gateway accepted stay writable. Modes, owners,
 * times and links are not counted: a node that is full of other attributes must stay writable.
 */
export function outgrow(before: Attributes, after: Attributes): number | undefined {
  const bytes = countedBytes(after);
  return bytes <= ATTRIBUTES_BYTES_MAX || bytes <= countedBytes(before) ? undefined : bytes;
}

function countedBytes(attributes: Attributes): number {
  const counted = Object.entries(attributes).filter(([key]) => key === "xattrs" || !Object.hasOwn(fields, key));
  return counted.length === 0 ? 0 : Buffer.byteLength(JSON.stringify(Object.fromEntries(counted)));
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function merge(target: unknown, patch: unknown): unknown {
  if (!isRecord(patch)) return patch;
  const result: Record<string, unknown> = isRecord(target) ? { ...target } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else result[key] = merge(result[key], value);
  }
  return result;
}

/** The attributes after a merge patch. Throws a ZodError if the result does not fit the schema. */
export function patchAttributes(current: Attributes, patch: AttributesPatch): Attributes {
  return attributes.parse(merge(current, patch));
}

/** Deep equality of JSON values. The order of keys does not count. */
export function sameValue(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((v, i) => sameValue(v, b[i]));
  if (!isRecord(a) || !isRecord(b)) return false;
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => key in b && sameValue(a[key], b[key]));
}

function difference(from: Record<string, unknown>, to: Record<string, unknown>): Record<string, unknown> | undefined {
  const patch: Record<string, unknown> = {};
  for (const key of Object.keys(from)) if (!(key in to)) patch[key] = null;
  for (const [key, value] of Object.entries(to)) {
    const before = from[key];
    if (sameValue(before, value)) continue;
    // A link is one value: its parts mean nothing alone.
    patch[key] = key !== "link" && isRecord(before) && isRecord(value) ? difference(before, value) : value;
  }
  return Object.keys(patch).length === 0 ? undefined : patch;
}

/**
 * The merge patch that turns `from` into `to`. Undefined when they are equal. Missing and empty extended attributes
 * count as equal.
 */
export function attributesDifference(from: Attributes, to: Attributes): AttributesPatch | undefined {
  const patch = difference(withoutEmpty(from), withoutEmpty(to));
  return patch === undefined ? undefined : attributesPatch.parse(patch);
}

export const sameAttributes = (a: Attributes, b: Attributes): boolean => attributesDifference(a, b) === undefined;

/**
 * Removes an object without names, which a merge patch that removed the last name leaves. It means the same as no
 * object.
 */
function withoutEmpty({ xattrs, ...rest }: Attributes): Attributes {
  return xattrs === undefined || Object.keys(xattrs).length === 0 ? rest : { ...rest, xattrs };
}
