/**
 * Patterns of paths: "*" is any part of a name, "?" one character of it, "**" as a name any number of names, "\" takes
 * what follows it as it is. Own, for the pattern is anybody's: matching by regular expressions, as libraries do, takes time
 * that doubles with each "*". Here it is at most the length of the pattern times that of the path.
 */
export const PATTERN_MAX = 1024;

/** One character of a name, or what stands for several. */
type Token = { readonly is: string } | "one" | "part";
type Part = readonly Token[] | "names";

export type PathPattern = readonly Part[];

/** Undefined where it is none: it begins with "/", and none of its names is empty. */
export function parsePattern(text: string): PathPattern | undefined {
  if (!text.startsWith("/") || text.length > PATTERN_MAX) return undefined;
  if (text === "/") return [];
  const names = text.slice(1).split("/");
  if (names.includes("") || names.some((name) => /(?:^|[^\\])(?:\\\\)*\\$/.test(name))) return undefined;
  return names.map((name) => (name === "**" ? "names" : tokensOf(name)));
}

function tokensOf(name: string): readonly Token[] {
  return [...name.matchAll(/\\(.)|(\*+)|(\?)|(.)/gsu)].map(([, taken, part, one, plain]): Token => {
    if (part !== undefined) return "part";
    return one === undefined ? { is: taken ?? plain ?? "" } : "one";
  });
}

export function matchesPattern(pattern: PathPattern, path: string): boolean {
  const names = path === "/" ? [] : path.slice(1).split("/");
  return matchesAll(
    pattern,
    names,
    (part) => part === "names",
    (part, name) => part !== "names" && matchesName(part, name),
  );
}

function matchesName(tokens: readonly Token[], name: string): boolean {
  const isOne = (token: Token, character: string) => token === "one" || (token !== "part" && token.is === character);
  return matchesAll(tokens, [...name], (token) => token === "part", isOne);
}

/**
 * Whether items stand for all values in their order, where some stand for any number of them. When it does not go on, the
 * last one of these takes one value more: those before it need not be tried again, for they left it as much as they could.
 */
function matchesAll<Item, Value>(
  items: readonly Item[],
  values: readonly Value[],
  isMany: (item: Item) => boolean,
  isOne: (item: Item, value: Value) => boolean,
): boolean {
  let item = 0;
  let value = 0;
  let many: { readonly item: number; value: number } | undefined;
  while (value < values.length) {
    const [current, given] = [items[item], values[value]];
    if (current !== undefined && isMany(current)) {
      item += 1;
      many = { item, value };
    } else if (current !== undefined && given !== undefined && isOne(current, given)) {
      item += 1;
      value += 1;
    } else if (many !== undefined) {
      many.value += 1;
      ({ item, value } = many);
    } else return false;
  }
  return items.slice(item).every(isMany);
}
