/** What a 400 says of a field: what came, and what was expected there. */
import { expect, test } from "vitest";
import { z } from "zod";
import { check, ProblemError } from "../../src/gateway/problems.ts";

const schema = z.strictObject({
  one: z.strictObject({ two: z.string().optional() }).default({}),
  any: z.record(z.string(), z.strictObject({ a: z.number().optional(), b: z.number().optional() })).optional(),
  piped: z.strictObject({ c: z.string().nullable() }).transform(String).nullish(),
  list: z.array(z.strictObject({ d: z.string() })).optional(),
});

function refusal(value: unknown): { field: unknown; detail: string } {
  try {
    check(schema, value, "body");
  } catch (error) {
    if (error instanceof ProblemError) return { field: error.document.field, detail: error.message };
    throw error;
  }
  throw new Error("nothing was refused");
}

test.each([
  [{ colour: 1 }, "colour", "colour: unknown field, expected one of one, any, piped, list"],
  [{ one: { three: 1 } }, "one.three", "one.three: unknown field, expected two"],
  [{ any: { k: { c: 1 } } }, "any.k.c", "any.k.c: unknown field, expected one of a, b"],
  [{ piped: { c: null, d: 1 } }, "piped.d", "piped.d: unknown field, expected c"],
  [{ list: [{ d: "", e: 1 }] }, "list.0.e", "list.0.e: unknown field"],
  ["text", "body", "body: Invalid input: expected object, received string"],
])("%j: %s", (value, field, detail) => {
  expect(refusal(value)).toEqual({ field, detail });
});
