/**
 * The input of an engine: checked against a JSON Schema (2020-12) by ajv. `format` is only an annotation, as in that
 * dialect.
 *
 * A malicious input can make some patterns take practically forever, and the gateway has one thread. So each check has
 * a time limit, which V8 also keeps within a regular expression; a check that takes longer is a refusal. The schema
 * itself comes from the owner, so it is compiled without a limit.
 */
import { createContext, runInContext } from "node:vm";
import { Ajv2020, type ErrorObject, type ValidateFunction } from "ajv/dist/2020.js";
import { LRUCache } from "lru-cache";
import { type EngineEntry, EngineError } from "../accounts/index.ts";
import { invalid, tooLarge } from "../problems.ts";

/** An input waits in a row of the store. Larger data belong into a file of the workspace. */
const INPUT_BYTES_MAX = 64 * 1024;
const SCHEMA_BYTES_MAX = 64 * 1024;
/**
 * Time limit of one check, by the clock of the machine: long enough that a machine which stood still for a moment
 * refuses nothing.
 */
const CHECK_MS = 500;

/** Compiled schemas by the id of the engine: an engine never changes. */
const compiled = new LRUCache<string, ValidateFunction>({ max: 200 });
const bench: { work: () => unknown } = { work: () => undefined };
const context = createContext(bench);

/** Returns the result of `work`, which must not throw; undefined when it is not done in time. */
function inTime<T>(milliseconds: number, work: () => T): { readonly value: T } | undefined {
  bench.work = work;
  try {
    // The time limit interrupts everything called from here, no matter in which context it was made.
    return { value: runInContext("work()", context, { timeout: milliseconds }) as T };
  } catch {
    return undefined;
  } finally {
    bench.work = () => undefined;
  }
}

function compile(schema: object): ValidateFunction {
  return new Ajv2020({ strict: false, validateFormats: false, logger: false }).compile(schema);
}

/** Throws an EngineError when inputs cannot be checked with the schema. */
export function checkSchema(schema: Readonly<Record<string, unknown>>): void {
  if (Buffer.byteLength(JSON.stringify(schema)) > SCHEMA_BYTES_MAX) {
    throw new EngineError(`an input schema has at most ${SCHEMA_BYTES_MAX} bytes`);
  }
  try {
    compile(schema);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new EngineError(`the input schema is not one of JSON Schema 2020-12: ${why}`, { cause: error });
  }
}

/** Returns the input as JSON. Throws a ProblemError that names the fault: 413 if it is too large, else 400. */
export function checkedInput(engine: Pick<EngineEntry, "id" | "inputSchema">, input: unknown): string {
  const text = JSON.stringify(input ?? null);
  if (Buffer.byteLength(text) > INPUT_BYTES_MAX) {
    throw tooLarge(`input: more than ${INPUT_BYTES_MAX} bytes; larger data belong in files of the workspace`, "input");
  }
  const { inputSchema } = engine;
  if (inputSchema === null) return text;
  const validate = compiled.get(engine.id) ?? compile(inputSchema);
  compiled.set(engine.id, validate);
  const checked = inTime(CHECK_MS, () => (validate(input ?? null) ? "good" : (validate.errors?.[0] ?? "bad")));
  if (checked === undefined) {
    throw invalid("input", `input: takes longer than ${CHECK_MS} ms to be checked by the engine's schema`);
  }
  if (checked.value !== "good") throw refusal(checked.value);
  return text;
}

function refusal(found: ErrorObject | "bad") {
  const error = found === "bad" ? undefined : found;
  const field = `input${(error?.instancePath ?? "").replaceAll("/", ".").replaceAll("~1", "/").replaceAll("~0", "~")}`;
  const extra = error?.keyword === "additionalProperties" ? `: ${String(error.params.additionalProperty)}` : "";
  return invalid(field, `${field}: ${error?.message ?? "is not what the engine takes"}${extra}`);
}
