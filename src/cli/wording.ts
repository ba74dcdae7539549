/** Numbers as people read them. */

export { describeAllUnsent, describeUnsent, formatCount, formatSize } from "../daemon/describe-unsent.ts";

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

/** A control character in a name must not end a line or steer a terminal. */
export function printable(text: string): string {
  return text.replace(/\p{Cc}/gu, (character) => `\\x${character.charCodeAt(0).toString(16).padStart(2, "0")}`);
}
