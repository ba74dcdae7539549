/** Makes row objects from the values that SQLite gives. */

export type RowMaker = (values: readonly unknown[]) => unknown;

/** By the text of their fields. */
const rowMakers = new Map<string, RowMaker>();

/**
 * Returns a function that makes a row from its values. It is compiled for these columns. Both drivers add one column
 * after the other to an object, which takes as long as the whole query.
 */
export function rowMaker(names: readonly string[]): RowMaker {
  const fields = names.map((name, index) => `${JSON.stringify(name)}: values[${index}]`).join(", ");
  const maker = rowMakers.get(fields) ?? (new Function("values", `return { ${fields} };`) as RowMaker);
  rowMakers.set(fields, maker);
  return maker;
}
