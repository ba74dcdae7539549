/** docs/user/conflict-table.md, made of the list of conflicts. Knows nothing of how they are played. */
import type { Conflict, Shown } from "./conflict-run.ts";

const HEAD = `# Conflicts

Two people change the same thing at the same time: each before hearing of the other's change. The table shows
the result for every pair that has a rule. Each row is a test (\`test/sim/conflicts.test.ts\`), played on two
mounts in both orders, with and without lag; this page is made of its list. A name with \`(conflict)\` stands for
one like \`a (conflict, HOST, 2026-01-31 12.00.05)\`. Nothing waits for a person, and no other file waits for a
conflict. "base" is the content before.

| one | the other | in the end | because |
|---|---|---|---|
`;

export function conflictTable(conflicts: readonly Conflict[]): string {
  return `${HEAD}${conflicts.map(row).join("")}`;
}

function row({ one, other, ends, otherFirst, why }: Conflict): string {
  const end = otherFirst === undefined ? told(ends) : `one first: ${told(ends)}; the other first: ${told(otherFirst)}`;
  return `| ${one} | ${other} | ${end} | ${why} |\n`;
}

function told(shown: Shown): string {
  const paths = Object.entries(shown);
  if (paths.length === 0) return "nothing";
  return paths.map(([path, what]) => `\`${path}\` (${what})`).join(", ");
}
