/** The end of docs/gateway/profiles.md: made of a run of the cases on a bare gateway, and read back for comparing. */

export interface BareRun {
  /** Case to the errno it ends in. */
  readonly refused: Readonly<Record<string, string>>;
  readonly total: number;
  /** What one can see of a name, and whether another mount shows the same. */
  readonly kept: Readonly<Record<string, boolean>>;
}

/** The page with the report of this run in the place of the one before. */
export function withReport(page: string, { refused, kept }: BareRun): string {
  return `${page.slice(0, page.indexOf(TABLE))}${TABLE}
| seen through another mount | |
|---|---|
${Object.entries(kept)
  .map(([what, isKept]) => `| ${what} | ${isKept ? "the same" : "kept by the mount that made them, not sent"} |`)
  .join("\n")}

| behaviour case that needs what is not there | ends in |
|---|---|
${Object.entries(refused)
  .sort(([a], [b]) => (a < b ? -1 : 1))
  .map(([name, errno]) => `| ${name} | ${errno} |`)
  .join("\n")}

Every other case of test/mount/cases behaves as on a plain folder.
`;
}

/** The lines that a run decides. `isShown`: whether a case could be shown in this run. */
export function readReport(text: string, isShown: (name: string) => boolean): string[] {
  const rows = text.slice(text.indexOf(TABLE) + TABLE.length).split("\n");
  return rows.filter((row) => {
    const [, name = ""] = /^\| (.+) \| EPERM \|$/.exec(row) ?? [];
    return row.startsWith("|") && (name === "" || isShown(name));
  });
}

const TABLE = "## What a run shows\n";
