/** Numbers as people read them. */

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

/** 75_000 -> "1 min 15 s". */
export function formatDuration(milliseconds: number): string {
  const seconds = Math.floor(milliseconds / 1000);
  const minutes = Math.floor(seconds / 60);
  const hours = Math.floor(minutes / 60);
  if (hours >= 48) return `${Math.floor(hours / 24)} days`;
  if (hours > 0) return `${hours} h ${minutes % 60} min`;
  if (minutes > 0) return `${minutes} min ${seconds % 60} s`;
  return `${seconds} s`;
}

/** 420 -> "0.4 s". */
export function formatWait(milliseconds: number): string {
  return milliseconds < 60_000 ? `${(milliseconds / 1000).toFixed(1)} s` : formatDuration(milliseconds);
}

/** What a next mount of the state dir would have to send: "nothing", "3 changes (1.5 MiB)", "1 change" without bytes. */
export function describeLeft(left: { readonly dirty: number; readonly bytesPending: number }): string {
  if (left.dirty === 0) return "nothing";
  const size = left.bytesPending === 0 ? "" : ` (${formatSize(left.bytesPending)})`;
  return `${formatCount(left.dirty, "change")}${size}`;
}

/** What a name may hold must not end a line, or steer a terminal. */
export function printable(text: string): string {
  return text.replace(/\p{Cc}/gu, (character) => `\\x${character.charCodeAt(0).toString(16).padStart(2, "0")}`);
}
