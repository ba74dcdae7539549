/** What commands show people: aligned columns that fit a terminal, fields one a line, times of this machine's zone. */
import { printable } from "./wording.ts";

const GAP = "  ";
/** No column is cut to less. */
const LEAST = 12;

/**
 * Columns under their heads. On a terminal of `width` columns the last one, and then the widest, are cut to fit;
 * elsewhere nothing is. Empty where there are no rows.
 */
export function table(heads: readonly string[], rows: readonly (readonly string[])[], width?: number): string {
  if (rows.length === 0) return "";
  const lines = [heads, ...rows.map((row) => row.map(printable))];
  const widths = heads.map((_, column) => Math.max(...lines.map((line) => (line[column] ?? "").length)));
  if (width !== undefined) narrow(widths, width);
  const shown = lines.map((line) => {
    const cells = line.map((cell, column) => cut(cell, widths[column] ?? 0).padEnd(widths[column] ?? 0));
    return `${cells.join(GAP).trimEnd()}\n`;
  });
  return shown.join("");
}

function narrow(widths: number[], width: number): void {
  const total = () => widths.reduce((sum, one) => sum + one, 0) + GAP.length * (widths.length - 1);
  const last = widths.length - 1;
  const byWidth = widths.map((_, column) => column).sort((a, b) => (widths[b] ?? 0) - (widths[a] ?? 0));
  for (const column of [last, ...byWidth]) {
    const excess = total() - width;
    const own = widths[column] ?? 0;
    if (excess > 0) widths[column] = Math.max(Math.min(own, LEAST), own - excess);
  }
}

function cut(cell: string, width: number): string {
  return cell.length <= width ? cell : `${cell.slice(0, width - 1)}…`;
}

/** One field a line: name, then value. Those without a value are left out. */
export function fieldLines(fields: readonly (readonly [name: string, value: string | null | undefined])[]): string {
  const given = fields.filter(([, value]) => value !== null && value !== undefined && value !== "");
  const width = Math.max(...given.map(([name]) => name.length));
  return given.map(([name, value]) => `${name.padEnd(width)}${GAP}${printable(value ?? "")}\n`).join("");
}

/** "2026-11-27 10:22:31" in this machine's zone; "" for none. */
export function showTime(moment: string | null): string {
  if (moment === null) return "";
  const at = new Date(moment);
  const two = (value: number) => String(value).padStart(2, "0");
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${day} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

/** Undefined where standard output is no terminal. */
export function terminalWidth(): number | undefined {
  return process.stdout.isTTY ? process.stdout.columns : undefined;
}
