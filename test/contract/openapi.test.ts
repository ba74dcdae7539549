import { Validator } from "@seriousme/openapi-schema-validator";
import { expect, test } from "vitest";
import { EXAMPLES } from "../../src/contract/examples.ts";
import { INPUTS } from "../../src/contract/inputs.ts";
import { openApiDocument } from "../../src/contract/openapi.ts";
import { OPERATIONS, type OperationName } from "../../src/contract/operations.ts";
import { type WalkedDocument, walkDocument } from "../support/openapi.ts";

const document = openApiDocument();
const walked: WalkedDocument = walkDocument(document);
const names = Object.keys(OPERATIONS) as OperationName[];

test("the document is OpenAPI 3.1", async () => {
  const validator = new Validator();
  const result = await validator.validate(structuredClone(document));
  expect(result).toMatchObject({ valid: true });
  expect(validator.version).toBe("3.1");
  // It does see what is wrong.
  const { info: _, ...broken } = structuredClone(document);
  expect(await new Validator().validate(broken)).toMatchObject({ valid: false });
});

test("every operation of the table is in it, with its method, scopes and every field of its query", () => {
  expect(walked.operations.map(({ id }) => id).toSorted()).toEqual(names.toSorted());
  for (const { id, method, path, scopes, query } of walked.operations) {
    const name = names.find((one) => one === id);
    if (name === undefined) throw new Error(`${id} is in no table.`);
    expect([method, path, scopes]).toEqual([
      OPERATIONS[name].method,
      OPERATIONS[name].path,
      [...OPERATIONS[name].scopes],
    ]);
    expect(Object.keys(query)).toEqual(Object.keys(INPUTS[name].query.shape));
  }
});

test("every example is what its schema says, and every schema that is sent or read alone has one", () => {
  const schemas = document.components.schemas;
  for (const [name, example] of Object.entries(EXAMPLES)) {
    expect([name, walked.problemsOf(schemas[name], example)]).toEqual([name, undefined]);
  }
  const without = Object.keys(schemas).filter((name) => !(name in EXAMPLES));
  expect(without.filter((name) => !/Page$|^Attributes/.test(name))).toEqual([]);
});

test("everything is described", () => {
  const missing: string[] = [];
  for (const methods of Object.values(document.paths)) {
    for (const operation of Object.values(methods)) {
      for (const one of [operation.parameters].flat()) {
        const text = JSON.stringify(one);
        if (!text.includes('"description"')) missing.push(`${String(operation.operationId)} ${text}`);
      }
    }
  }
  expect(missing).toEqual([]);
});

test("references lead somewhere, and nothing is left of the schemas' own", () => {
  const text = JSON.stringify(document);
  expect(text).not.toContain("$defs");
  const targets = [...text.matchAll(/"\$ref":"#\/components\/(\w+)\/(\w+)"/g)];
  expect(targets.length).toBeGreaterThan(50);
  for (const [, kind = "", name = ""] of targets) expect(document.components[kind]).toHaveProperty(name);
});
