/** Output for people: aligned columns that fit a terminal, fields one a line, times in this machine's zone. */
import { printable } from "./wording.ts";

const GAP = "  ";
/** No column is made narrower than this. */
const LEAST = 12;

/**
 * Columns under their heads. On a terminal of `width` columns the last column, and then the widest, are cut to fit. Ids
 * are never cut, because people copy them. Without `width` nothing is cut. Empty without rows.
 */
export function table(heads: readonly string[], rows: readonly (readonly string[])[], width?: number): string {
  if (rows.length === 0) return "";
  const lines = [heads, ...rows.map((row) => row.map(printable))];
  const widths = heads.map((_, column) => Math.max(...lines.map((line) => widthOf(line[column] ?? ""))));
  if (width !== undefined) narrow(widths, heads, width);
  const shown = lines.map((line) => {
    const cells = widths.map((own, column) => fill(cut(line[column] ?? "", own), own));
    return `${cells.join(GAP).trimEnd()}\n`;
  });
  return shown.join("");
}

function narrow(widths: number[], heads: readonly string[], width: number): void {
  const total = () => widths.reduce((sum, one) => sum + one, 0) + GAP.length * (widths.length - 1);
  const last = widths.length - 1;
  const byWidth = widths.map((_, column) => column).sort((a, b) => (widths[b] ?? 0) - (widths[a] ?? 0));
  for (const column of [last, ...byWidth].filter((one) => heads[one] !== "ID")) {
    const excess = total() - width;
    const own = widths[column] ?? 0;
    if (excess > 0) widths[column] = Math.max(Math.min(own, LEAST), own - excess);
  }
}

/** Characters that terminals show in two columns: East Asian wide characters, and emoji. */
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}|\ufe0f/u;
const NO_WIDTH = /^[\p{M}\p{Cf}]+$/u;

/** The number of columns of one character, with its combining marks. */
function columnsOf(character: string): number {
  if (NO_WIDTH.test(character)) return 0;
  return WIDE.test(character) ? 2 : 1;
}

let segmenter: Intl.Segmenter | undefined;

/** The first use takes some milliseconds, which commands that print plain ASCII are spared. */
function charactersOf(text: string): Intl.Segments {
  segmenter ??= new Intl.Segmenter();
  return segmenter.segment(text);
}

/** Width of a text in columns of a terminal. */
function widthOf(text: string): number {
  if (/^[\x20-\x7e]*$/.test(text)) return text.length;
  let width = 0;
  for (const { segment } of charactersOf(text)) width += columnsOf(segment);
  return width;
}

const fill = (cell: string, width: number) => cell + " ".repeat(width - widthOf(cell));

function cut(cell: string, width: number): string {
  if (widthOf(cell) <= width) return cell;
  let kept = "";
  let used = 0;
  for (const { segment } of charactersOf(cell)) {
    used += columnsOf(segment);
    if (used > width - 1) break;
    kept += segment;
  }
  return `${kept}…`;
}

/** One field a line: name, then value. Fields without a value are left out. */
export function fieldLines(fields: readonly (readonly [name: string, value: string | null | undefined])[]): string {
  const given = fields.filter(([, value]) => value !== null && value !== undefined && value !== "");
  const width = Math.max(...given.map(([name]) => name.length));
  return given.map(([name, value]) => `${name.padEnd(width)}${GAP}${printable(value ?? "")}\n`).join("");
}

/** "2026-11-27 10:22:31" in this machine's zone; "" for null. */
export function showTime(moment: string | null): string {
  if (moment === null) return "";
  const at = new Date(moment);
  const two = (value: number) => String(value).padStart(2, "0");
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${day} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

/** Undefined when standard output is no terminal. */
export function terminalWidth(): number | undefined {
  return process.stdout.isTTY ? process.stdout.columns : undefined;
}
