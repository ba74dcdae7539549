/**
 * An OpenAPI document as tests walk it: its operations with references followed, checks of answers
 * against it, and values its schemas forbid.
 */
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import { z } from "zod";

const object = z.record(z.string(), z.unknown());
const reference = z.object({ $ref: z.string() });

const schemaShape = z.looseObject({
  type: z.union([z.string(), z.array(z.string())]).optional(),
  properties: z.record(z.string(), object).optional(),
  required: z.array(z.string()).optional(),
  additionalProperties: z.union([z.boolean(), object]).optional(),
  anyOf: z.array(object).optional(),
  enum: z.array(z.unknown()).optional(),
  const: z.unknown().optional(),
  minLength: z.number().optional(),
  maxLength: z.number().optional(),
  pattern: z.string().optional(),
  format: z.string().optional(),
  minimum: z.number().optional(),
  maximum: z.number().optional(),
});
export type Schema = z.infer<typeof schemaShape>;

const content = z.record(z.string(), z.object({ schema: object }));
const response = z.object({ description: z.string(), content: content.optional(), headers: object.optional() });
const parameter = z.object({ name: z.string(), in: z.enum(["path", "query", "header"]), schema: object });
const operationShape = z.looseObject({
  operationId: z.string(),
  summary: z.string(),
  security: z.tuple([z.record(z.string(), z.array(z.string()))]),
  "x-may-lack": z.array(z.string()).default([]),
  parameters: z.array(parameter),
  requestBody: z.object({ required: z.boolean(), content }).optional(),
  responses: z.record(z.string(), z.union([reference, response])),
});
const documentShape = z.looseObject({
  openapi: z.string(),
  paths: z.record(z.string(), z.record(z.string(), operationShape)),
});

export interface WalkedOperation {
  readonly id: string;
  readonly method: string;
  readonly path: string;
  readonly scopes: readonly string[];
  readonly mayLack: readonly string[];
  readonly query: Readonly<Record<string, Schema>>;
  /** Of a JSON body and of the `metadata` part. */
  readonly body: Schema | undefined;
  readonly metadata: Schema | undefined;
  readonly bodyRequired: boolean;
  readonly responses: Readonly<Record<string, z.infer<typeof response>>>;
}

export interface WalkedDocument {
  readonly operations: readonly WalkedOperation[];
  /** The schema a reference means, or the schema itself. */
  resolve(schema: unknown): Schema;
  /** What is wrong with a value, in Ajv's words; fields the schema does not name are wrong too. */
  problemsOf(schema: unknown, value: unknown): string | undefined;
}

export function walkDocument(given: unknown): WalkedDocument {
  const document = documentShape.parse(given);
  const find = (pointer: string) =>
    pointer
      .slice(2)
      .split("/")
      .reduce<unknown>((at, key) => object.parse(at)[key], document);
  const follow = (value: unknown): unknown => {
    const { success, data } = reference.safeParse(value);
    return success ? find(data.$ref) : value;
  };
  const resolve = (schema: unknown) => schemaShape.parse(follow(schema));

  const ajv = new Ajv2020({ strict: false, allErrors: true, logger: false });
  formats.default(ajv);
  const known = new Map<string, ValidateFunction>();
  const validatorOf = (schema: unknown): ValidateFunction => {
    const key = JSON.stringify(schema);
    let validate = known.get(key);
    if (validate === undefined) {
      validate = ajv.compile(object.parse(inlined(schema, follow)));
      known.set(key, validate);
    }
    return validate;
  };

  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): WalkedOperation => {
      const bodies = operation.requestBody?.content ?? {};
      const json = bodies["application/json"]?.schema;
      const multipart = bodies["multipart/form-data"]?.schema;
      const metadata = multipart === undefined ? undefined : resolve(multipart).properties?.metadata;
      const parameters = operation.parameters.filter((one) => one.in === "query");
      return {
        id: operation.operationId,
        method: method.toUpperCase(),
        path,
        scopes: Object.values(operation.security[0]).flat(),
        mayLack: operation["x-may-lack"],
        query: Object.fromEntries(parameters.map(({ name, schema }) => [name, resolve(schema)])),
        body: json === undefined ? undefined : resolve(json),
        metadata: metadata === undefined ? undefined : resolve(metadata),
        bodyRequired: operation.requestBody?.required === true,
        responses: Object.fromEntries(
          Object.entries(operation.responses).map(([status, one]) => [status, response.parse(follow(one))]),
        ),
      };
    }),
  );
  return {
    operations,
    resolve,
    problemsOf(schema, value) {
      const validate = validatorOf(schema);
      return validate(value) ? undefined : ajv.errorsText(validate.errors);
    },
  };
}

/** With what is referred to in its place, and every object that names its fields closed. */
function inlined(schema: unknown, follow: (value: unknown) => unknown): unknown {
  if (Array.isArray(schema)) return schema.map((item) => inlined(item, follow));
  if (typeof schema !== "object" || schema === null) return schema;
  const target = object.parse(follow(schema));
  const { examples: _, ...own } = target;
  const entries = Object.entries(own).map(([key, value]) => [key, inlined(value, follow)]);
  const closed = "properties" in target && !("additionalProperties" in target) ? { additionalProperties: false } : {};
  return { ...Object.fromEntries(entries), ...closed };
}

function typesOf(schema: Schema): readonly string[] {
  return schema.type === undefined ? [] : [schema.type].flat();
}

/** Values a JSON field of this schema must not have. Empty where any is good. */
export function wrongValues(schema: Schema, resolve: (schema: unknown) => Schema): readonly unknown[] {
  const choices = schema.anyOf?.map(resolve).filter((choice) => !typesOf(choice).includes("null"));
  if (choices !== undefined) return choices.flatMap((choice) => wrongValues(choice, resolve));
  const types = typesOf(schema);
  if (types.includes("string")) return [5, { wrong: true }, ["x"], ...wrongTexts(schema)];
  if (types.includes("integer")) return ["x", 1.5, true, {}, ...wrongNumbers(schema)];
  if (types.includes("object")) return ["x", 5, [], true];
  if (types.includes("array")) return ["x", 5, {}];
  if (types.includes("boolean")) return ["x", 5, {}];
  return schema.const === undefined && schema.enum === undefined ? [] : ["nonsense", 5];
}

/** The same for a field of a query, where all is text. */
export function wrongQueryTexts(schema: Schema): readonly string[] {
  const types = typesOf(schema);
  if (types.includes("integer")) return ["x", "-1", "1.5", "", "1e3", ...wrongNumbers(schema).map(String)];
  if (types.includes("boolean")) return ["nonsense"];
  return wrongTexts(schema);
}

function textUnlike(pattern: string): string {
  const text = ["?", ":"].find((one) => !new RegExp(pattern).test(one));
  if (text === undefined) throw new Error(`no text that is not like ${pattern}`);
  return text;
}

function wrongTexts({ minLength = 0, maxLength, pattern, format, enum: choices, const: only }: Schema): string[] {
  return [
    ...(minLength > 0 ? [""] : []),
    ...(maxLength === undefined ? [] : ["x".repeat(maxLength + 1)]),
    ...(pattern === undefined ? [] : [textUnlike(pattern)]),
    ...(format === "date-time" ? ["yesterday", "2026-02-30T00:00:00Z", "2026-01-31"] : []),
    ...(choices === undefined && only === undefined ? [] : ["nonsense", ""]),
  ];
}

function wrongNumbers({ minimum, maximum }: Schema): number[] {
  return [...(minimum === undefined ? [] : [minimum - 1]), ...(maximum === undefined ? [] : [maximum + 1])];
}

interface Place {
  readonly schema: Schema;
  readonly names: readonly string[];
}

/** Every field of a schema, those of objects within it too. */
export function fieldsOf(walked: WalkedDocument, schema: Schema, names: readonly string[] = []): Place[] {
  const objects = [schema, ...(schema.anyOf ?? []).map(walked.resolve)];
  return objects.flatMap(({ properties = {}, additionalProperties }) => {
    const own = Object.entries(properties);
    const any: [string, unknown][] =
      typeof additionalProperties === "object" && Object.keys(additionalProperties).length > 0
        ? [["k", additionalProperties]]
        : [];
    return [...own, ...any].flatMap(([name, value]) => {
      const place = { schema: walked.resolve(value), names: [...names, name] };
      return [place, ...fieldsOf(walked, place.schema, place.names)];
    });
  });
}

/** The value with one field of it set, objects on the way made. */
export function withField(value: unknown, [name, ...more]: readonly string[], field: unknown): unknown {
  if (name === undefined) return field;
  const entries: [string, unknown][] = typeof value === "object" && value !== null ? Object.entries(value) : [];
  const own = new Map(entries);
  own.set(name, withField(own.get(name), more, field));
  return Object.fromEntries(own);
}
