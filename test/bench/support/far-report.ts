/** What came of the far benchmark: a side's rounds of each workload, as they are written and as a table. */
import { scaleOf, show, showWork, spread, table } from "./figures.ts";
import type { Machine } from "./options.ts";
import type { Measured } from "./rounds.ts";

export interface FarRow {
  readonly workload: string;
  readonly measures: string;
  readonly command: string;
  /** By side, one value a round, in seconds; why there is none. */
  readonly seconds: Readonly<Record<string, Measured>>;
}

export interface FarReport {
  readonly bench: "far";
  readonly machine: Machine;
  readonly line: { readonly milliseconds: number; readonly rate: string | undefined };
  readonly sides: readonly string[];
  readonly notes: readonly string[];
  readonly rows: readonly FarRow[];
}

export function medianOf(row: FarRow, side: string): number | undefined {
  const values = row.seconds[side]?.values ?? [];
  return values.length === 0 ? undefined : spread(values).median;
}

export function lineInWords({ milliseconds, rate }: FarReport["line"]): string {
  return `round trip ${milliseconds} ms${rate === undefined ? "" : `, ${rate}`}`;
}

export function farTable(report: FarReport, options: { daemon: boolean }): string {
  const { machine, sides, rows } = report;
  const head = ["workload", ...sides, ...sides.slice(0, -1).map((side) => `wsfs / ${side}`)];
  const body = rows.map((row) => [
    row.workload,
    ...sides.map((side) => {
      const values = row.seconds[side]?.values ?? [];
      return values.length === 0 ? "fails" : show(spread(values), scaleOf({ unit: "s", first: values }));
    }),
    ...sides.slice(0, -1).map((side) => {
      const [ours, theirs] = [medianOf(row, "wsfs"), medianOf(row, side)];
      return ours === undefined || theirs === undefined ? "-" : (ours / theirs).toPrecision(3);
    }),
  ]);
  const told = rows.flatMap((row) => [
    `${row.workload}: ${row.measures}`,
    `    ${row.command}`,
    ...sides.flatMap((side) => {
      const { failure, daemon } = row.seconds[side] ?? {};
      return [
        ...(failure === undefined ? [] : [`    ${side}: ${failure}`]),
        ...(options.daemon && daemon !== undefined ? [`    ${side}${showWork(daemon)}`] : []),
      ];
    }),
  ]);
  return [
    `far: a gateway far away (${lineInWords(report.line)}); median (smallest-largest)`,
    `${machine.cores} cores (${machine.processor}), ${machine.kernel}, Node ${machine.node}`,
    ...report.notes,
    "",
    ...table([head, ...body]),
    "",
    ...told,
    "",
  ].join("\n");
}
