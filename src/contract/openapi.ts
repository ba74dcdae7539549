/**
 * The OpenAPI 3.1 document of the gateway, made only of the contract's tables, so that a new operation or field appears
 * in it automatically. Pure; it knows nothing of a server.
 */
import { z } from "zod";
import { sameValue } from "./attributes.ts";
import { EXAMPLES } from "./examples.ts";
import { NODE_LINES } from "./http.ts";
import { INPUTS } from "./inputs.ts";
import { OPERATIONS, type Operation, type OperationName } from "./operations.ts";
import {
  ANSWER_HEADERS,
  type Answer,
  COMMON_PROBLEMS,
  OUTPUTS,
  type Output,
  PROBLEMS,
  type ProblemStatus,
  REQUEST_HEADERS,
} from "./outputs.ts";
import { problem } from "./resources.ts";

export type JsonObject = { readonly [key: string]: unknown };

export interface OpenApiDocument extends JsonObject {
  readonly openapi: string;
  readonly info: JsonObject & { readonly title: string };
  readonly paths: Readonly<Record<string, Readonly<Record<string, JsonObject>>>>;
  readonly components: JsonObject & { readonly schemas: Readonly<Record<string, JsonObject>> };
}

const TITLE = "Workspace content gateway";
/** The version of the operations, as in their paths. */
const API_VERSION = "1";
const SECURITY = "accessToken";

const DESCRIPTION = `Workspaces, their files and folders, versions and the journal; engines, their executions and triggers.

Every request, except for this document, carries \`Authorization: Bearer <ACCESS_TOKEN>\`, or an API key in the token's
place. Each operation names the scopes that its token must have: without a token the answer is 401, without a scope 403
naming it. A refusal is a problem document (RFC 9457): \`detail\` says what was expected and what came, \`field\` names the
field at fault. Unknown fields are refused, so that a typo is reported and not ignored.

HEAD has the answer of GET without the body.

Lists come in pages, by \`pageNo\`, \`pageSize\` and \`orderBy\`. With \`after\`, all pages show the list at one position.

Reads by path, listings and the journal may show a change only some time after its answer; reads by id show it at once.`;

const SUMMARIES_OF_PARAMETERS: Readonly<Record<string, string>> = {
  nodeId: "Id of the node",
  engineId: "Id or name of the engine",
  installationId: "Id of the installation",
  executionId: "Id of the execution",
  keyId: "Id of the API key (not the key)",
  triggerId: "Id of the trigger",
  path: 'Names from the workspace\'s root, each percent-encoded, "/" between them kept or encoded too ("%2F")',
};

const tagOf = (path: string) => path.split("/")[2] ?? "";

/** The named schemas found so far. */
type Components = Map<string, JsonObject>;

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Turns references to `$defs` into references to components. */
function relocated(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(relocated);
  if (!isObject(value)) return value;
  const entries = Object.entries(value).map(([key, item]): [string, unknown] => [
    key,
    key === "$ref" && typeof item === "string"
      ? item.replace(/^#\/\$defs\//, "#/components/schemas/")
      : relocated(item),
  ]);
  return Object.fromEntries(entries);
}

function schemaOf(components: Components, schema: z.ZodType, io: "input" | "output"): JsonObject {
  const {
    $schema: _,
    $defs = {},
    ...own
  } = z.toJSONSchema(schema, {
    io,
    override({ jsonSchema }) {
      // The format says the same to people and programs.
      if (jsonSchema.format === "date-time") delete jsonSchema.pattern;
      // The pattern matches the number as text in the query.
      if (jsonSchema.type === "integer") delete jsonSchema.pattern;
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
      // A reader of an answer must not refuse a field that is added later.
      if (io === "output" && jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties;
    },
  });
  for (const [name, definition] of Object.entries($defs)) {
    const example = EXAMPLES[name];
    const component = {
      ...(relocated(definition) as JsonObject),
      ...(example === undefined ? {} : { examples: [example] }),
    };
    const known = components.get(name);
    if (known !== undefined && !sameValue(known, component)) {
      throw new Error(`${name} is one thing in requests and another in answers: give the two names of their own.`);
    }
    components.set(name, component);
  }
  return relocated(own) as JsonObject;
}

function pathParameters(path: string): JsonObject[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => ({
    name,
    in: "path",
    required: true,
    description: SUMMARIES_OF_PARAMETERS[name] ?? name,
    schema: { type: "string", minLength: 1 },
  }));
}

function queryParameters(components: Components, query: z.ZodType): JsonObject[] {
  const { properties, required } = schemaOf(components, query, "input");
  if (!isObject(properties)) throw new Error("A query is an object.");
  return Object.entries(properties).map(([name, schema]) => {
    const { description, ...rest } = isObject(schema) ? schema : {};
    return {
      name,
      in: "query",
      required: Array.isArray(required) && required.includes(name),
      ...(description === undefined ? {} : { description }),
      schema: rest,
    };
  });
}

function headerParameters(output: Output): JsonObject[] {
  return (output.takes ?? []).map((name) => {
    const { description, example } = REQUEST_HEADERS[name];
    return { name, in: "header", required: false, description, schema: { type: "string" }, example };
  });
}

function requestBody(
  components: Components,
  input: { metadata?: z.ZodType; body?: z.ZodType },
  required: boolean,
): JsonObject {
  const content: Record<string, JsonObject> = {};
  if (input.metadata !== undefined && input.body !== undefined) {
    throw new Error(
      "A client generated from the document can send only one type of body for an operation: make it two operations.",
    );
  }
  if (input.metadata !== undefined) {
    content["multipart/form-data"] = {
      schema: {
        type: "object",
        properties: {
          metadata: schemaOf(components, input.metadata, "input"),
          file: { type: "string", format: "binary", description: "The content. Its own Content-Type is kept" },
        },
        required: ["file"],
        additionalProperties: false,
      },
      encoding: { metadata: { contentType: "application/json" }, file: { contentType: "*/*" } },
    };
  }
  if (input.body !== undefined) {
    content["application/json"] = { schema: schemaOf(components, input.body, "input") };
  }
  return Object.keys(content).length === 0 ? {} : { requestBody: { required, content } };
}

function answerHeaders(names: readonly (keyof typeof ANSWER_HEADERS)[]): JsonObject {
  if (names.length === 0) return {};
  const entries = names.map((name) => [name, { description: ANSWER_HEADERS[name], schema: { type: "string" } }]);
  return { headers: Object.fromEntries(entries) };
}

function answerOf(components: Components, { description, body, headers = [] }: Answer): JsonObject {
  return { description, ...contentOf(components, body), ...answerHeaders(headers) };
}

function contentOf(components: Components, body: Answer["body"]): JsonObject {
  switch (body) {
    case undefined:
      return {};
    case "bytes":
      return { content: { "*/*": { schema: { type: "string", format: "binary" } } } };
    case "events":
      return { content: { "text/event-stream": { schema: { type: "string" } } } };
    case "lines":
      return { content: { [NODE_LINES]: { schema: { type: "string" } } } };
    default:
      return { content: { "application/json": { schema: schemaOf(components, body, "output") } } };
  }
}

const HEADERS_OF_PROBLEMS: Partial<Record<ProblemStatus, readonly (keyof typeof ANSWER_HEADERS)[]>> = {
  401: ["WWW-Authenticate"],
  416: ["ETag", "Content-Range"],
};

function problemsOf(components: Components): Readonly<Record<ProblemStatus, JsonObject>> {
  const content = { "application/problem+json": { schema: schemaOf(components, problem, "output") } };
  const entries = Object.entries(PROBLEMS).map(([status, description]) => [
    status,
    { description, content, ...answerHeaders(HEADERS_OF_PROBLEMS[Number(status) as ProblemStatus] ?? []) },
  ]);
  return Object.fromEntries(entries);
}

function scopesText({ scopes, mayLack = [], lacking, role }: Operation): string {
  if (scopes.length === 0) return "Any valid token.";
  const needed = scopes.map((scope) => `\`${scope}\``).join(", ");
  const roleText = role === undefined ? "" : ` Role: ${role}.`;
  if (mayLack.length === 0) return `Scopes: ${needed}.${roleText}`;
  const lacked = mayLack.map((scope) => `\`${scope}\``).join(", ");
  return `Scopes: ${needed}.${roleText} Without ${lacked} ${lacking}`;
}

function describeOperation(components: Components, name: OperationName): JsonObject {
  const operation: Operation = OPERATIONS[name];
  const input: { query: z.ZodType; metadata?: z.ZodType; body?: z.ZodType } = INPUTS[name];
  const output: Output = OUTPUTS[name];
  const isForAll = operation.scopes.length === 0;
  const statuses = [...COMMON_PROBLEMS, ...output.problems]
    .filter((status) => status !== 403 || !isForAll)
    .sort((a, b) => a - b);
  return {
    operationId: name,
    tags: [tagOf(operation.path)],
    summary: operation.summary,
    description: scopesText(operation),
    security: [{ [SECURITY]: operation.scopes }],
    ...(operation.mayLack === undefined ? {} : { "x-may-lack": operation.mayLack }),
    parameters: [
      ...pathParameters(operation.path),
      ...queryParameters(components, input.query),
      ...headerParameters(output),
    ],
    ...requestBody(components, input, output.bodyOptional !== true),
    responses: Object.fromEntries([
      ...Object.entries(output.answers).map(([status, answer]) => [status, answerOf(components, answer)]),
      ...statuses.map((status) => [String(status), { $ref: `#/components/responses/${status}` }]),
    ]),
  };
}

/**
 * Throws an Error if a named schema differs between requests and answers, or if an operation takes two types of body.
 */
export function openApiDocument(): OpenApiDocument {
  const components: Components = new Map();
  const problems = problemsOf(components);
  const names = Object.keys(OPERATIONS) as OperationName[];
  const paths: Record<string, Record<string, JsonObject>> = {};
  for (const name of names) {
    const { path, method } = OPERATIONS[name];
    paths[path] = { ...paths[path], [method.toLowerCase()]: describeOperation(components, name) };
  }
  return {
    openapi: "3.1.0",
    info: { title: TITLE, version: API_VERSION, description: DESCRIPTION },
    servers: [{ url: "/", description: "This gateway" }],
    tags: [...new Set(names.map((name) => tagOf(OPERATIONS[name].path)))].map((name) => ({ name })),
    paths,
    components: {
      schemas: Object.fromEntries([...components].sort(([a], [b]) => (a < b ? -1 : 1))),
      responses: problems,
      securitySchemes: { [SECURITY]: { type: "http", scheme: "bearer", bearerFormat: "JWT" } },
    },
  };
}
