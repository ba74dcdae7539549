/**
 * What an engine takes: a JSON Schema (2020-12), checked by ajv. `format` is a remark there, as that dialect has it.
 *
 * Some patterns take longer than anybody lives on an input made for it, and the gateway has one thread. So each check has a
 * limit of time, which V8 keeps within a regular expression as well; what takes longer is refused. A schema itself is the
 * owner's word: it is compiled without a limit.
 */
import { createContext, runInContext } from "node:vm";
import { Ajv2020, type ErrorObject, type ValidateFunction } from "ajv/dist/2020.js";
import { LRUCache } from "lru-cache";
import { type EngineEntry, EngineError } from "../accounts/index.ts";
import { invalid, tooLarge } from "../problems.ts";

/** An input waits in a row of the store: what is larger belongs into a file of the workspace. */
const INPUT_BYTES_MAX = 64 * 1024;
const SCHEMA_BYTES_MAX = 64 * 1024;
/** Of a machine's clock, so that one that stood still for a moment refuses nothing. */
const CHECK_MS = 500;

/** An engine is never changed: by its id. */
const compiled = new LRUCache<string, ValidateFunction>({ max: 200 });
const bench: { work: () => unknown } = { work: () => undefined };
const context = createContext(bench);

/** What `work` comes to, which must not throw; undefined when it is not done in time. */
function inTime<T>(milliseconds: number, work: () => T): { readonly value: T } | undefined {
  bench.work = work;
  try {
    // Interrupted is all that was called from there, wherever it was made.
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

/** Throws an EngineError when it is no schema that inputs can be checked with. */
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

/** The input as JSON. Throws a 400 or 413 that names what is wrong with it. */
export function checkedInput(engine: Pick<EngineEntry, "id" | "inputSchema">, input: unknown): string {
  const text = JSON.stringify(input ?? null);
  if (Buffer.byteLength(text) > INPUT_BYTES_MAX) {
    throw tooLarge(
      `input: more than ${INPUT_BYTES_MAX} bytes; larger things belong into files of the workspace`,
      "input",
    );
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
