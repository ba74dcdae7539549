/**
 * Reads TypeScript as text, as far as rules about it need: what a file imports, its code without
 * comments and strings, circles in a graph. Knows nothing of this project.
 */

/** After one of these a slash begins a regular expression, after anything else it divides. */
const BEFORE_REGEX = /(?:^|[(,=:[!&|?{};+\-*%<>~^]|\b(?:return|typeof|case|in|of|void|delete|do|else|await|yield))\s*$/;
const REGEX = /\/(?![/*])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\//y;
const COMMENT = /\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$)/y;
const STRING = /"(?:\\[\s\S]|[^"\\\n])*"|'(?:\\[\s\S]|[^'\\\n])*'/y;
const TEMPLATE_PART = /(?:\\[\s\S]|\$(?!\{)|[^`\\$])*/y;
const IMPORT = /\b(?:from|import|require)\s*\(?\s*["']/g;

/** The text with comments and the insides of strings and regular expressions blanked; same length, same lines. */
export function codeOf(text: string): string {
  let code = "";
  // One entry for each open template literal: how many braces are open in its ${...}.
  const templates: number[] = [];
  const take = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = code.length;
    return pattern.exec(text)?.[0];
  };
  const blank = (part: string) => part.replace(/[^\n]/g, " ");
  const quoted = (part: string) => part.slice(0, 1) + blank(part.slice(1, -1)) + part.slice(-1);
  const templatePart = () => {
    code += blank(take(TEMPLATE_PART) ?? "");
    if (text.startsWith("${", code.length)) {
      code += "${";
      templates.push(0);
    } else {
      code += text.charAt(code.length);
    }
  };
  while (code.length < text.length) {
    const next = text.charAt(code.length);
    const depth = templates.at(-1);
    if (next === "`") {
      code += next;
      templatePart();
    } else if (next === "}" && depth === 0) {
      templates.pop();
      code += next;
      templatePart();
    } else if (next === "/") {
      const comment = take(COMMENT);
      const regex = BEFORE_REGEX.test(code.slice(-200)) ? take(REGEX) : undefined;
      if (comment !== undefined) code += blank(comment);
      else code += regex === undefined ? next : quoted(regex);
    } else if (next === '"' || next === "'") {
      code += quoted(take(STRING) ?? next);
    } else {
      if (depth !== undefined && next === "{") templates.splice(-1, 1, depth + 1);
      if (depth !== undefined && next === "}") templates.splice(-1, 1, depth - 1);
      code += next;
    }
  }
  return code;
}

/** What the file imports, as written: types, re-exports, dynamic imports and require included. */
export function importsOf(text: string): string[] {
  return [...codeOf(text).matchAll(IMPORT)].map((match) => {
    const start = match.index + match[0].length;
    const quote = text.charAt(start - 1);
    return text.slice(start, text.indexOf(quote, start));
  });
}

/** One circle for each way back found while walking the graph; its first node stands at the end again. */
export function circles(graph: ReadonlyMap<string, readonly string[]>): string[][] {
  const found: string[][] = [];
  const done = new Set<string>();
  const path: string[] = [];
  const walk = (node: string) => {
    const at = path.indexOf(node);
    if (at >= 0) found.push([...path.slice(at), node]);
    if (at >= 0 || done.has(node)) return;
    path.push(node);
    for (const next of graph.get(node) ?? []) walk(next);
    path.pop();
    done.add(node);
  };
  for (const node of graph.keys()) walk(node);
  return found;
}
