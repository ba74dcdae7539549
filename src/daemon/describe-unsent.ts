/** Describes the unsent changes in the words of commands and logs. */

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

/** 1536 -> "1.5 KiB". */
export function formatSize(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : Number(value.toFixed(1))} ${UNITS[unit]}`;
}

/** "1 change", "2 changes". */
export function formatCount(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

/** Describes the unsent changes of a state dir: "nothing", "3 changes (1.5 MiB)", "1 change" without bytes. */
export function describeUnsent(left: { readonly dirty: number; readonly bytesPending: number }): string {
  if (left.dirty === 0) return "nothing";
  const size = left.bytesPending === 0 ? "" : ` (${formatSize(left.bytesPending)})`;
  return `${formatCount(left.dirty, "change")}${size}`;
}

/** Describes the unsent changes of a state dir as describeUnsent does, and adds the number of parked ones. */
export function describeAllUnsent(left: Parameters<typeof describeUnsent>[0] & { readonly parked: number }): string {
  return `${describeUnsent(left)}${left.parked === 0 ? "" : `; ${left.parked} parked`}`;
}
