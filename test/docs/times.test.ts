/** docs/user/times.md says what the constants in the sources are. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const read = (path: string) => readFileSync(fileURLToPath(new URL(`../../${path}`, import.meta.url)), "utf8");
const ROW = /^\| (.+) \| (\d+) (ms|s|min|h|d) \| \[.+\]\((?:\.\.\/)+(.+)\) `(\w+)(?:\.(\w+))?` \|$/;
const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, min: 60_000, h: 3600_000, d: 86_400_000 };

const rows = read("docs/user/times.md")
  .split("\n")
  .filter((line) => line.startsWith("| ") && !/^\| (?:what|---) /.test(line));

test.each(rows)("%s", (line) => {
  const [, , count, unit = "", path = "", name = "", key] = ROW.exec(line) ?? [];
  expect(msOf(read(path), name, key)).toBe(Number(count) * (UNITS[unit] ?? Number.NaN));
});

/** A product of numbers: of the constant, or of a field of it. */
function msOf(source: string, name: string, key: string | undefined): number {
  const NUMBERS = "([\\d_]+(?: \\* [\\d_]+)*)";
  const [, product] =
    new RegExp(
      key === undefined ? `const ${name} = ${NUMBERS};` : `const ${name} = \\{[^}]*\\b${key}: ${NUMBERS}[,\\s]`,
    ).exec(source) ?? [];
  if (product === undefined) throw new Error(`There is no ${name} of numbers.`);
  const value = product.split(" * ").reduce((all, factor) => all * Number(factor.replaceAll("_", "")), 1);
  return name.endsWith("_SECONDS") ? value * 1000 : value;
}
