/**
 * Checks the arguments of programs, which may have no types, and says in words what is wrong. An unknown option must
 * not be ignored silently. It loads nothing. Messages never show a text, which may be a token.
 */

interface Wrong {
  /** The argument or option. */
  readonly field: string;
  /** "expected …, got …". */
  readonly reason: string;
}

/** The first fault of the value. Undefined: it has none. */
export type Check = (value: unknown, field: string) => Wrong | undefined;

/** A check for each field of T, also for those that may be absent, so that no new option is forgotten. */
export type Fields<T> = { readonly [Name in keyof Required<T>]: Check };

export function is(expected: string, holds: (value: unknown) => boolean): Check {
  return (value, field) => (holds(value) ? undefined : { field, reason: `expected ${expected}, got ${kindOf(value)}` });
}

export function optional(check: Check): Check {
  return (value, field) => (value === undefined ? undefined : check(value, field));
}

export function either(one: unknown, check: Check): Check {
  return (value, field) => (value === one ? undefined : check(value, field));
}

/**
 * An object with these fields and no others. The name of an option stands alone, any other field's after its object.
 */
export function fields<T>(checks: Fields<T>): Check {
  const known: ReadonlyMap<string, Check> = new Map(Object.entries<Check>(checks));
  return (value, field) => {
    if (!isPlainObject(value)) return { field, reason: `expected a plain object, got ${kindOf(value)}` };
    const of = field === "options" ? "" : `${field}.`;
    const unknown = Object.keys(value).find((name) => !known.has(name));
    if (unknown !== undefined) {
      return { field: `${of}${unknown}`, reason: `unknown; expected ${[...known.keys()].join(", ")}` };
    }
    for (const [name, check] of known) {
      const wrong = check(Reflect.get(value, name), `${of}${name}`);
      if (wrong !== undefined) return wrong;
    }
    return undefined;
  };
}

/** The first fault of a call's arguments. `checks`: their names in order, each with its check. */
export function wrongArgument(checks: Readonly<Record<string, Check>>, given: readonly unknown[]): Wrong | undefined {
  const names = Object.keys(checks);
  for (const [index, name] of names.entries()) {
    const wrong = checks[name]?.(given[index], name);
    if (wrong !== undefined) return wrong;
  }
  if (given.length <= names.length) return undefined;
  return { field: names.at(-1) ?? "arguments", reason: `expected ${names.length} arguments, got ${given.length}` };
}

/** Checks the arguments of a constructing call. Throws a TypeError. */
export function checkArguments(call: string, checks: Readonly<Record<string, Check>>, given: readonly unknown[]): void {
  const wrong = wrongArgument(checks, given);
  if (wrong !== undefined) throw new TypeError(`${call}: ${wrong.field}: ${wrong.reason}`);
}

export const aFunction = is("a function", (value) => typeof value === "function");
export const aBoolean = is("true or false", (value) => typeof value === "boolean");
/** A lone surrogate would become another character on the way. */
export const aText = is("well-formed text", (value) => typeof value === "string" && value.isWellFormed());
export const filledText = is(
  "well-formed text that is not empty",
  (value) => typeof value === "string" && value !== "" && value.isWellFormed(),
);

export function wholeNumber(least: number, most = Number.MAX_SAFE_INTEGER): Check {
  const upTo = most === Number.MAX_SAFE_INTEGER ? "" : ` to ${most}`;
  return is(
    `a whole number from ${least}${upTo}`,
    (value) => typeof value === "number" && Number.isSafeInteger(value) && value >= least && value <= most,
  );
}

/** Has these methods, its own or inherited. */
export function hasMethods(expected: string, ...names: readonly string[]): Check {
  return is(
    expected,
    (value) =>
      typeof value === "object" &&
      value !== null &&
      names.every((name) => typeof Reflect.get(value, name) === "function"),
  );
}

/** An AbortSignal. It may be one of another realm, so `instanceof` does not suffice. */
export const aSignal = is(
  "an AbortSignal",
  (value) =>
    typeof value === "object" &&
    value !== null &&
    typeof Reflect.get(value, "aborted") === "boolean" &&
    typeof Reflect.get(value, "addEventListener") === "function",
);

/** An object that JSON does not change: NaN would arrive as null, which removes an attribute. */
export const aJsonObject = is("a plain object of JSON values", (value) => isPlainObject(value) && isJson(value));

export const aJson = is("a JSON value", isJson);

/** At least one. */
export const texts = is(
  "an array of texts, at least one",
  (value) => Array.isArray(value) && value.length > 0 && value.every((item) => typeof item === "string" && item !== ""),
);

function isJson(value: unknown): boolean {
  if (value === null || typeof value === "boolean") return true;
  if (typeof value === "string") return value.isWellFormed();
  if (typeof value === "number") return Number.isFinite(value);
  if (Array.isArray(value)) return value.every(isJson);
  // Undefined values are not sent.
  return isPlainObject(value) && Object.values(value).every((item) => item === undefined || isJson(item));
}

/** True for objects made by { … }, also in another realm. The content of a Map or a promise would be lost silently. */
function isPlainObject(value: unknown): value is object {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || (typeof prototype === "object" && Object.getPrototypeOf(prototype) === null);
}

function kindOf(value: unknown): string {
  if (value === "") return '""';
  if (typeof value === "string") return value.isWellFormed() ? "text" : "text with half of a character";
  if (typeof value === "number" || typeof value === "boolean" || value === undefined || value === null) {
    return String(value);
  }
  if (typeof value !== "object") return `a ${typeof value}`;
  if (value instanceof Promise) return "a promise that was not awaited";
  if (value instanceof Date && Number.isNaN(value.getTime())) return "a Date without a time";
  const { name } = Object(value.constructor) as { name?: unknown };
  return typeof name === "string" && name !== "Object" && name !== "" ? `an object of class ${name}` : "another object";
}
