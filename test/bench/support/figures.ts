/**
 * What came of a workload on two sides, round by round: medians, spread and ratio, as a table and
 * as JSON. Nothing here judges a figure.
 */
import type { Machine } from "./options.ts";
import type { DaemonWork } from "./sides.ts";

/** Seconds-based units are shown with a prefix that fits; "/s" units as they are. */
export type Unit = "s" | "MB/s" | "rows/s" | "uploads/s" | "nodes/s" | "files/s" | "pages/s";

export interface Figures {
  readonly workload: string;
  readonly measures: string;
  readonly command: string;
  readonly unit: Unit;
  /** One value a round; first[n] and second[n] were measured one right after the other. */
  readonly first: readonly number[];
  readonly second: readonly number[];
  /** What the mount's daemon did in the last round, uploads that began meanwhile included. */
  readonly daemon?: DaemonWork;
}

/** What is not measured here, and why. */
export interface Skipped {
  readonly workload: string;
  readonly why: string;
}

export interface Report {
  readonly bench: string;
  readonly measures: string;
  readonly machine: Machine;
  /** What `first` and `second` are. */
  readonly sides: readonly [string, string];
  readonly notes: readonly string[];
  readonly results: readonly Figures[];
  readonly skipped: readonly Skipped[];
}

export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

export function spread(values: readonly number[]): Spread {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (index: number) => sorted[index] ?? Number.NaN;
  const middle = (sorted.length - 1) / 2;
  return { median: (at(Math.floor(middle)) + at(Math.ceil(middle))) / 2, min: at(0), max: at(sorted.length - 1) };
}

/** Second over first, pair by pair: what slowed the whole machine for a while falls out. */
export function ratios({ first, second }: Pick<Figures, "first" | "second">): number[] {
  return second.map((value, round) => value / (first[round] ?? Number.NaN));
}

export function toJson(report: Report): string {
  const results = report.results.map((figures) => ({
    ...figures,
    firstSpread: spread(figures.first),
    secondSpread: spread(figures.second),
    ratio: spread(ratios(figures)),
  }));
  return `${JSON.stringify({ ...report, results })}\n`;
}

export function toTable(report: Report, options: { daemon: boolean }): string {
  const { machine, sides, results } = report;
  const rows = results.map((figures) => {
    const scale = scaleOf(figures);
    return [
      figures.workload,
      show(spread(figures.first), scale),
      show(spread(figures.second), scale),
      showRatio(spread(ratios(figures))),
      String(figures.first.length),
    ];
  });
  const head = ["workload", sides[0], sides[1], `${sides[1]} / ${sides[0]}`, "rounds"];
  return [
    `${report.bench}: ${report.measures}`,
    `${machine.cores} cores (${machine.processor}), ${machine.kernel}, Node ${machine.node}`,
    ...report.notes,
    "",
    ...table([head, ...rows]),
    "",
    ...report.skipped.map(({ workload, why }) => `not measured: ${workload}: ${why}`),
    ...results.flatMap((figures) => [
      `${figures.workload}: ${figures.measures}`,
      `    ${figures.command}`,
      ...(options.daemon && figures.daemon !== undefined ? [showWork(figures.daemon)] : []),
    ]),
    "",
  ].join("\n");
}

export interface Scale {
  readonly factor: number;
  readonly unit: string;
}

export function scaleOf({ unit, first }: Pick<Figures, "unit" | "first">): Scale {
  if (unit !== "s") return { factor: 1, unit };
  const { median } = spread(first);
  if (median < 1e-3) return { factor: 1e6, unit: "µs" };
  return median < 1 ? { factor: 1e3, unit: "ms" } : { factor: 1, unit: "s" };
}

export function show({ median, min, max }: Spread, { factor, unit }: Scale): string {
  return `${digits(median * factor)} ${unit} (${digits(min * factor)}-${digits(max * factor)})`;
}

function showRatio({ median, min, max }: Spread): string {
  return `${digits(median)} (${digits(min)}-${digits(max)})`;
}

/** Three digits that count, all before the point. */
function digits(value: number): string {
  if (!Number.isFinite(value)) return "?";
  const decimals = value === 0 ? 0 : Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))));
  return value.toFixed(Math.min(decimals, 4));
}

export function showWork({ requests, processor }: DaemonWork): string {
  const sorted = Object.entries(requests).sort(([, a], [, b]) => b - a);
  const counts = sorted.map(([name, count]) => `${name} ${count}`).join(", ") || "none";
  return `    daemon: ${processor.toFixed(2)} s of processor time; requests: ${counts}`;
}

export function table(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const line = (row: readonly string[]) =>
    row
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0)))
      .join("  ");
  const rule = widths.map((width) => "-".repeat(width)).join("  ");
  const [head = [], ...body] = rows;
  return [line(head), rule, ...body.map(line)];
}
