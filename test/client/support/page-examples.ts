/** The examples of docs/sdk.md: blocks of code that name their file, and what each prints. */

export interface Example {
  readonly file: string;
  readonly code: string;
  /** The block of text right after it. */
  readonly output: string | undefined;
}

export function examplesOf(text: string): Example[] {
  const block = /^```ts (\S+)\n(.*?)^```\n(?:\n```text\n(.*?)^```$)?/gms;
  return [...text.matchAll(block)].map(([, file = "", code = "", output]) => ({ file, code, output }));
}

/** As strict as a compiler is asked to be. */
export const COMPILER_OPTIONS = {
  target: "es2023",
  types: ["node"],
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  noUnusedLocals: true,
};
