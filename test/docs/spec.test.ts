/** docs/spec.md names, for each sentence of the service's specification, tests that are there. */
import { existsSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

const ROOT = new URL("../../", import.meta.url);
const read = (path: string) => readFileSync(new URL(path, ROOT), "utf8");

interface Row {
  readonly section: string;
  readonly sentence: string;
  readonly tests: readonly { readonly file: string; readonly name: string }[];
}

/** Rows of the table: section, sentence, and `file` "name", "name"; `file` "name". */
function rowsOf(page: string): Row[] {
  return [...page.matchAll(/^\| (\d) \| (.+?) \| (.*) \|$/gm)].map(([, section = "", sentence = "", held = ""]) => {
    const tests = [...held.matchAll(/`([^`]+)`((?:,? "[^"]+")+)/g)].flatMap(([, file = "", names = ""]) =>
      [...names.matchAll(/"([^"]+)"/g)].map(([, name = ""]) => ({ file, name })),
    );
    return { section, sentence, tests };
  });
}

/** Of tests and their groups in a file's text, those of tables too; with their placeholders. */
function namesOf(text: string): string[] {
  const first = /(?:\b(?:test|it|describe)(?:\.\w+)?|\))\(\s*("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`[^`]*`)/g;
  return [...text.matchAll(first)].map(([, literal = ""]) => literal.slice(1, -1));
}

/** What is wrong with a row. */
function faultsOf({ sentence, tests }: Row, namesIn: (file: string) => readonly string[] | undefined): string[] {
  if (tests.length === 0) return [`no test: ${sentence}`];
  return tests.flatMap(({ file, name }) => {
    const names = namesIn(file);
    if (names === undefined) return [`there is no ${file}`];
    return names.some((one) => one.startsWith(name)) ? [] : [`${file} has no test "${name}"`];
  });
}

const rows = rowsOf(read("docs/spec.md"));

function namesIn(file: string): string[] | undefined {
  return existsSync(new URL(file, ROOT)) ? namesOf(read(file)) : undefined;
}

test("every section that states something is there, and each line of the table is read", () => {
  expect([...new Set(rows.map(({ section }) => section))]).toEqual(["1", "2", "3", "4", "5", "6", "7", "9"]);
  const lines = read("docs/spec.md").split("\n");
  expect(rows).toHaveLength(lines.filter((line) => line.startsWith("| ")).length - 2);
  expect(new Set(rows.map(({ section, sentence }) => section + sentence)).size).toBe(rows.length);
});

test("every test that is named is there", () => {
  expect(rows.flatMap((row) => faultsOf(row, namesIn))).toEqual([]);
});

test("one that is not there is seen", () => {
  const source = 'test("a b", () => {});\ntest.each<[string]>([["x"]])(\n  "%s c", f);\ndescribe.each(X)(`$k d`, f);';
  expect(namesOf(source)).toEqual(["a b", "%s c", "$k d"]);
  const names = (file: string) => (file === "a.test.ts" ? namesOf(source) : undefined);
  const of = (cell: string) => rowsOf(`| 1 | s | ${cell} |`).flatMap((row) => faultsOf(row, names));
  expect(of('`a.test.ts` "a", "%s c"; `a.test.ts` "$k"')).toEqual([]);
  expect(of('`a.test.ts` "a", "b"')).toEqual(['a.test.ts has no test "b"']);
  expect(of('`b.test.ts` "a"')).toEqual(["there is no b.test.ts"]);
  expect(of("not tested")).toEqual(["no test: s"]);
});
