/**
 * A C struct of the kernel's FUSE header as a table: field -> offset and type. Reading gives a plain object, writing
 * takes one. This is the only place that knows how integers lie in memory. It knows no opcode.
 *
 * 64-bit integers become numbers. Above 2^53 they are rounded, so users of an offset or a size check
 * `Number.isSafeInteger` first. Values that must be exact and may be larger (a request's `unique`) are never read as a
 * number but copied as bytes.
 */
import type { HandleId, KernelNodeId } from "../engine/api/index.ts";

/**
 * "i64" is signed. "id" is a `unique` without its resent bit (63). "node" and "handle" are ids that we gave the kernel,
 * stored like "u64".
 */
export type FieldType = "u16" | "u32" | "i32" | "u64" | "i64" | "id" | "node" | "handle";

interface Ids {
  readonly node: KernelNodeId;
  readonly handle: HandleId;
}

export type Fields = Readonly<Record<string, readonly [offset: number, type: FieldType]>>;

export type Values<F extends Fields> = {
  -readonly [K in keyof F]: F[K][1] extends keyof Ids ? Ids[F[K][1]] : number;
};

export interface Struct<F extends Fields = Fields> {
  /** Its name in linux/fuse.h. */
  readonly name: string;
  readonly size: number;
  readonly fields: F;
  read(view: DataView, at: number): Values<F>;
  /** Fields that are left out keep their bytes in the memory (zero in a new buffer). */
  write(view: DataView, at: number, values: Partial<Values<F>>): void;
  /** A new buffer that holds just this struct. */
  encode(values: Partial<Values<F>>): Uint8Array;
}

/** The kernel uses the machine's byte order. */
export const LITTLE_ENDIAN = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;

const HIGH = 2 ** 32;
const LOW_AT = LITTLE_ENDIAN ? 0 : 4;
const HIGH_AT = LITTLE_ENDIAN ? 4 : 0;

export function readU64(view: DataView, at: number): number {
  return view.getUint32(at + HIGH_AT, LITTLE_ENDIAN) * HIGH + view.getUint32(at + LOW_AT, LITTLE_ENDIAN);
}

/** Signed or not: the two's complement of a safe integer, or the nearest value of 64 bits. */
export function writeU64(view: DataView, at: number, value: number): void {
  view.setUint32(at + LOW_AT, value >>> 0, LITTLE_ENDIAN);
  view.setInt32(at + HIGH_AT, Math.floor(value / HIGH), LITTLE_ENDIAN);
}

function readI64(view: DataView, at: number): number {
  return view.getInt32(at + HIGH_AT, LITTLE_ENDIAN) * HIGH + view.getUint32(at + LOW_AT, LITTLE_ENDIAN);
}

/** A `unique` as a number to look up by. The counter starts small, so it stays far below 2^53. */
export function readId(view: DataView, at: number): number {
  return (
    (view.getUint32(at + HIGH_AT, LITTLE_ENDIAN) & 0x7fff_ffff) * HIGH + view.getUint32(at + LOW_AT, LITTLE_ENDIAN)
  );
}

/** True if bit 63 is set: the kernel sent this request before, to a daemon that did not answer. */
export function isResent(view: DataView, at: number): boolean {
  return view.getInt32(at + HIGH_AT, LITTLE_ENDIAN) < 0;
}

export function isZero64(view: DataView, at: number): boolean {
  return view.getInt32(at, LITTLE_ENDIAN) === 0 && view.getInt32(at + 4, LITTLE_ENDIAN) === 0;
}

function readField(view: DataView, at: number, type: FieldType): number {
  switch (type) {
    case "u32":
      return view.getUint32(at, LITTLE_ENDIAN);
    case "u64":
    case "node":
    case "handle":
      return readU64(view, at);
    case "i64":
      return readI64(view, at);
    case "i32":
      return view.getInt32(at, LITTLE_ENDIAN);
    case "u16":
      return view.getUint16(at, LITTLE_ENDIAN);
    case "id":
      return readId(view, at);
  }
}

function writeField(view: DataView, at: number, type: FieldType, value: number): void {
  switch (type) {
    case "u32":
    case "i32":
      view.setUint32(at, value, LITTLE_ENDIAN);
      break;
    case "u64":
    case "i64":
    case "id":
    case "node":
    case "handle":
      writeU64(view, at, value);
      break;
    case "u16":
      view.setUint16(at, value, LITTLE_ENDIAN);
      break;
  }
}

export function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

export function struct<const F extends Fields>(name: string, size: number, fields: F): Struct<F> {
  const list = Object.entries(fields).map(([key, [at, type]]) => ({ key: key as keyof F, at, type }));
  const layout: Struct<F> = {
    name,
    size,
    fields,
    read(view, at) {
      const values = {} as Values<F>;
      for (const field of list) values[field.key] = readField(view, at + field.at, field.type) as Values<F>[keyof F];
      return values;
    },
    write(view, at, values) {
      for (const field of list) {
        const value = values[field.key];
        if (value !== undefined) writeField(view, at + field.at, field.type, value);
      }
    },
    encode(values) {
      const bytes = new Uint8Array(size);
      layout.write(viewOf(bytes), 0, values);
      return bytes;
    },
  };
  return layout;
}
