/** The medians of the far benchmark as a picture: a bar for each side of each workload, on a logarithmic scale. */
import { type FarReport, lineInWords, medianOf } from "./far-report.ts";

const WIDTH = 760;
const LEFT = 130;
const RIGHT = 90;
const BAR = 13;
const GAP = 12;
const HEAD = 58;
const COLOURS: Readonly<Record<string, string>> = {
  plain: "#8a8f98",
  rclone: "#d9822b",
  other: "#7aa7d9",
  wsfs: "#1f6feb",
};

const SIDES: Readonly<Record<string, string>> = { plain: "local disk", other: "other build" };
const WORKLOADS: Readonly<Record<string, string>> = {
  "find-10k-cold": "find, 10,000 files",
  "grep-500-cold": "grep, 500 files",
  "read-512m-cold": "read 512 MiB",
  "reread-512m": "reread 512 MiB",
  "read-16m-cold": "read 16 MiB",
  "first-byte": "first byte",
  untar: "untar 1,000 files",
  upload: "upload 1,000 files",
  rm: "rm 1,000 files",
  git: "git clone, status",
};

export function toChart(report: FarReport): string {
  const { rows, sides, line, machine } = report;
  const all = rows.flatMap((row) => sides.flatMap((side) => medianOf(row, side) ?? []));
  const least = 10 ** Math.floor(Math.log10(Math.min(...all, 1)));
  const most = 10 ** Math.ceil(Math.log10(Math.max(...all, least * 10)));
  const place = (seconds: number) =>
    LEFT + (Math.log10(Math.max(seconds, least) / least) / Math.log10(most / least)) * (WIDTH - LEFT - RIGHT);
  const rowHeight = sides.length * BAR + GAP;
  const bottom = HEAD + rows.length * rowHeight;
  const height = bottom + 28;
  const ticks = Array.from({ length: Math.round(Math.log10(most / least)) + 1 }, (_, power) => least * 10 ** power);
  const kernel = machine.kernel.replace(/^(\S+ \d+\.\d+).*/, "$1");
  const title = `A gateway far away (${lineInWords(line)}; ${machine.cores} cores, ${kernel}); less is better`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" font-family="sans-serif" font-size="11">`,
    `<title>${title}</title>`,
    `<rect width="${WIDTH}" height="${height}" fill="#ffffff"/>`,
    text(10, 20, title, 'font-size="13" font-weight="bold"'),
    ...sides.flatMap((side, index) => [
      `<rect x="${LEFT + index * 90}" y="32" width="11" height="11" fill="${colourOf(side)}"/>`,
      text(LEFT + index * 90 + 16, 42, SIDES[side] ?? side),
    ]),
    ...ticks.flatMap((tick) => [
      `<line x1="${round(place(tick))}" y1="${HEAD - 4}" x2="${round(place(tick))}" y2="${bottom}" stroke="#e3e6ea"/>`,
      text(place(tick), bottom + 16, shown(tick), 'text-anchor="middle" fill="#57606a"'),
    ]),
    ...rows.flatMap((row, index) => {
      const top = HEAD + index * rowHeight;
      return [
        text(
          LEFT - 8,
          top + (sides.length * BAR) / 2 + 4,
          WORKLOADS[row.workload] ?? row.workload,
          'text-anchor="end"',
        ),
        ...sides.flatMap((side, bar) => barOf(medianOf(row, side), side, top + bar * BAR)),
      ];
    }),
    "</svg>",
    "",
  ].join("\n");

  function barOf(seconds: number | undefined, side: string, y: number): string[] {
    if (seconds === undefined) return [text(LEFT + 4, y + BAR - 3, "fails", `fill="${colourOf(side)}"`)];
    const length = Math.max(1, place(seconds) - LEFT);
    return [
      `<rect x="${LEFT}" y="${y}" width="${round(length)}" height="${BAR - 2}" fill="${colourOf(side)}"/>`,
      text(LEFT + length + 4, y + BAR - 3, shown(seconds)),
    ];
  }
}

function colourOf(side: string): string {
  return COLOURS[side] ?? "#57606a";
}

function shown(seconds: number): string {
  const exact = Number(seconds.toPrecision(3));
  return exact < 1 ? `${Number((exact * 1000).toPrecision(3))} ms` : `${exact} s`;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

function text(x: number, y: number, words: string, style = ""): string {
  const safe = words.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  return `<text x="${round(x)}" y="${round(y)}"${style === "" ? "" : ` ${style}`}>${safe}</text>`;
}
