/** docs/user/times.md says what the constants in the sources are. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../src/lib/time.ts";

const read = (path: string) => readFileSync(fileURLToPath(new URL(`../../${path}`, import.meta.url)), "utf8");
const ROW = /^\| (.+) \| (\d+) (ms|s|min|h|d) \| \[.+\]\((?:\.\.\/)+(.+)\) `(\w+)(?:\.(\w+))?` \|$/;
const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, min: MINUTE_MS, h: HOUR_MS, d: DAY_MS };
const NAMED: Readonly<Record<string, number>> = { MINUTE_MS, HOUR_MS, DAY_MS };

const rows = read("docs/user/times.md")
  .split("\n")
  .filter((line) => line.startsWith("| ") && !/^\| (?:what|---) /.test(line));

test.each(rows)("%s", (line) => {
  const [, , count, unit = "", path = "", name = "", key] = ROW.exec(line) ?? [];
  expect(msOf(read(path), name, key)).toBe(Number(count) * (UNITS[unit] ?? Number.NaN));
});

/** A product of numbers and of the units of lib/time: of the constant, or of a field of it. */
function msOf(source: string, name: string, key: string | undefined): number {
  const FACTOR = `(?:[\\d_]+|${Object.keys(NAMED).join("|")})`;
  const NUMBERS = `(${FACTOR}(?: \\* ${FACTOR})*)`;
  const [, product] =
    new RegExp(
      key === undefined ? `const ${name} = ${NUMBERS};` : `const ${name} = \\{[^}]*\\b${key}: ${NUMBERS}[,\\s]`,
    ).exec(source) ?? [];
  if (product === undefined) throw new Error(`There is no ${name} of numbers.`);
  const value = product
    .split(" * ")
    .reduce((all, factor) => all * (NAMED[factor] ?? Number(factor.replaceAll("_", ""))), 1);
  return name.endsWith("_SECONDS") ? value * 1000 : value;
}
