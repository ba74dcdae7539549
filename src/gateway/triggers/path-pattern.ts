/**
 * Patterns of paths: "*" is any part of a name, "?" is one character of a name, "**" as a whole name is any number of
 * names, and "\" takes the next character literally. The matcher is our own, because patterns come from callers: the
 * regular expressions of libraries take time that doubles with each "*". Here the time is at most the length of the
 * pattern times that of the path.
 */
export const PATTERN_MAX = 1024;

/** One character of a name, or a placeholder. */
type Token = { readonly is: string } | "one" | "part";
type Part = readonly Token[] | "names";

export type PathPattern = readonly Part[];

/**
 * Undefined when the text is no pattern. A pattern begins with "/", has at most PATTERN_MAX UTF-16 units and no empty
 * name, and no name ends in a single "\".
 */
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
 * True if the items stand for all values in their order. Some items stand for any number of values. When a match gets
 * stuck, the last of these takes one more value. Earlier ones need not be tried again: each took as few values as it
 * could.
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
