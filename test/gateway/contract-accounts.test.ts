/**
 * Every operation of the contract by accounts: with a token that is over, without each of its scopes, with each role, with
 * none, and with a token for elsewhere. Made of the table and of the examples of contract.test.ts, so that what is added to
 * them is counted here. Each answer is one that the OpenAPI document knows.
 */
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { execution, executionPage } from "../../src/contract/engines.ts";
import { openApiDocument } from "../../src/contract/openapi.ts";
import { OPERATIONS, type Operation, type OperationName } from "../../src/contract/operations.ts";
import { includesRole, ROLES, type Role } from "../../src/contract/roles.ts";
import { SCOPES } from "../../src/contract/scopes.ts";
import type { Account } from "../../src/gateway/accounts/index.ts";
import { accountToken, newAccount, type TokenChoice } from "../support/account-token.ts";
import { createTestCore, part, type ReadAnswer, type TestCore, uploadBody } from "../support/gateway-core.ts";
import { type WalkedOperation, walkDocument } from "../support/openapi.ts";
import { type Example, filledPath, makeExamples } from "./support/contract-examples.ts";

const UNKNOWN_ID = "5ca1ab1e-0000-4000-8000-000000000000";
const UUID = /\b[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}\b/g;

const walked = walkDocument(openApiDocument());
const counts: Record<string, number> = { operations: walked.operations.length };
afterAll(() => {
  process.stdout.write(`contract with accounts: ${JSON.stringify(counts)}\n`);
});

let core: TestCore;
let carl: Account;
let elsewhere: { readonly id: string };
let examples: Readonly<Record<string, readonly Example[]>>;

beforeEach(async () => {
  core = createTestCore();
  ({ examples } = await makeExamples(core));
  carl = newAccount(core.accounts, "carl");
  elsewhere = core.gateway.ensureWorkspace("elsewhere");
});

const setRole = (role: Role, workspace: { readonly id: string } = core.workspace) =>
  core.accounts.accounts.setRole(carl.id, workspace.id, role);
const tokenOf = (choice?: TokenChoice) => accountToken(core.accounts, core.clock, carl, choice);
const neededRole = (id: string) => (OPERATIONS[id as OperationName] as Operation).role;

/** The usual good call, in the examples' workspace whatever the token is bound to. */
function good({ id, query }: WalkedOperation): Example {
  const [example] = examples[id] ?? [];
  if (example === undefined) throw new Error(`${id} is new: add a good call of it to contract-examples.`);
  return "workspace" in query ? { ...example, query: { workspace: core.workspace.id, ...example.query } } : example;
}

/** The same of what is not there. */
function nowhere(example: Example): Example {
  const text = JSON.stringify(example).replaceAll(UUID, UNKNOWN_ID);
  const unknown = JSON.parse(text) as Example;
  return unknown.id === undefined ? unknown : { ...unknown, id: UNKNOWN_ID };
}

async function call(operation: WalkedOperation, example: Example, token: string, kind: string): Promise<ReadAnswer> {
  const { query = {}, headers = {}, json, metadata, file } = example;
  const parts = metadata === undefined ? [] : [part("metadata", JSON.stringify(metadata))];
  const answer = await core.call(operation.method, filledPath(operation.path, example), {
    ...{ query: { ...query }, headers: { ...headers }, token },
    ...(json === undefined ? {} : { json }),
    ...(file === undefined ? {} : { body: uploadBody(...parts, part("file", file)) }),
  });
  const described = operation.responses[String(answer.status)];
  if (described === undefined)
    throw new Error(`The document does not know this answer: ${operation.id} ${answer.status}`);
  const schema = described.content?.["application/problem+json"]?.schema;
  if (answer.status >= 400)
    expect([operation.id, walked.problemsOf(schema, answer.json)]).toEqual([operation.id, undefined]);
  counts[kind] = (counts[kind] ?? 0) + 1;
  return answer;
}

describe.each(walked.operations)("$method $path ($id)", (operation) => {
  const needed = neededRole(operation.id);

  test("with a token that has expired, of a sign-in that has ended, of an account that is gone, and without one", async () => {
    setRole("owner");
    const statusOf = async (token: string) => (await call(operation, good(operation), token, "401")).status;
    expect(await statusOf("")).toBe(401);
    const [ended, expired] = [tokenOf({ login: "one" }), tokenOf({ login: "two" })];
    core.accounts.records.endLogin("one");
    expect(await statusOf(ended)).toBe(401);
    await core.clock.advance(300_000);
    expect(await statusOf(expired)).toBe(401);
    const gone = tokenOf();
    core.accounts.accounts.remove(carl.id);
    expect(await statusOf(gone)).toBe(401);
  });

  test("without each of its scopes: that comes first, whatever the role", async () => {
    for (const scope of operation.scopes.filter((one) => !operation.mayLack.includes(one))) {
      for (const role of [undefined, ...ROLES]) {
        if (role !== undefined) setRole(role);
        const token = tokenOf({ scopes: SCOPES.filter((one) => one !== scope) });
        const answer = await call(operation, good(operation), token, "403 by scope");
        expect([answer.status, answer.json.scope, answer.json.grant]).toEqual([403, scope, undefined]);
        core.accounts.accounts.removeRole(carl.id, core.workspace.id);
      }
    }
  });

  if (needed === undefined) {
    test("by somebody without a role: nothing of the workspace is told", async () => {
      const answer = await call(operation, good(operation), tokenOf(), "2xx without a role");
      expect(answer.status).toBeLessThan(300);
      for (const id of [core.workspace.id, core.workspace.root]) expect(answer.bytes.toString()).not.toContain(id);
    });
    return;
  }

  test.each(ROLES)("by a %s", async (role) => {
    setRole(role);
    const before = core.blobs.contents.size;
    const isEnough = includesRole(role, needed);
    const answer = await call(operation, good(operation), tokenOf(), isEnough ? "2xx by role" : "403 by role");
    if (isEnough) {
      const refusal = answer.status < 300 ? undefined : answer.json.detail;
      return expect(refusal).toBeUndefined();
    }
    const grant = { workspace: core.workspace.id, role: needed };
    expect([answer.status, answer.json.grant, answer.json.scope]).toEqual([403, grant, undefined]);
    expect(core.blobs.contents.size).toBe(before);
  });

  test("by somebody without a role: it is not there, in the words of what never was", async () => {
    const before = core.blobs.contents.size;
    const example = good(operation);
    // A role elsewhere is none here.
    setRole("owner", elsewhere);
    const seen = await call(operation, example, tokenOf(), "404");
    const never = await call(operation, nowhere(example), tokenOf(), "404");
    const ids = [...(example.id === undefined ? [] : [example.id]), UNKNOWN_ID];
    const plain = ({ bytes }: ReadAnswer) =>
      ids.reduce((text, id) => text.replaceAll(id, "ID"), bytes.toString().replaceAll(UUID, "ID"));
    expect([seen.status, plain(seen)]).toEqual([404, plain(never)]);
    expect(seen.headers).toEqual(never.headers);
    expect(core.blobs.contents.size).toBe(before);
  });

  test("with a token for elsewhere, and with one for here", async () => {
    for (const place of [core.workspace, elsewhere]) setRole("owner", place);
    const bound = await call(operation, good(operation), tokenOf({ workspace: elsewhere.id }), "403 bound elsewhere");
    expect([bound.status, bound.json.grant]).toEqual([403, { workspace: core.workspace.id, role: needed }]);
    const here = await call(operation, good(operation), tokenOf({ workspace: core.workspace.id }), "2xx bound here");
    expect(here.status).toBeLessThan(300);
  });
});

test.each(walked.operations.filter(({ id }) => ["listExecutions", "getExecution", "cancelExecution"].includes(id)))(
  "$id shows the journal entry that started an execution to tokens that may read the journal, and its position to all",
  async (operation) => {
    setRole("editor");
    const { position } = await core.file("/in/secret.txt", "x");
    await core.clock.advance(1000);
    const newest = core.database.prepare("SELECT id FROM execution WHERE trigger_id IS NOT NULL ORDER BY number DESC");
    const id = String(newest.pluck().get());
    const tell = async (scopes: readonly string[]) => {
      const answer = await call(operation, { ...good(operation), id }, tokenOf({ scopes }), "2xx of an execution");
      expect(answer.status).toBe(200);
      const isList = operation.id === "listExecutions";
      const all = isList ? executionPage.parse(answer.json).items : [execution.parse(answer.json)];
      return all.find((one) => one.id === id)?.cause;
    };
    const triggerId = String(examples.getTrigger?.[0]?.id);
    const entry = { name: "secret.txt", position };
    expect(await tell(operation.scopes)).toMatchObject({ triggerId, position, entry });
    const less = operation.scopes.filter((scope) => !operation.mayLack.includes(scope));
    expect(less).toEqual([
      operation.id === "cancelExecution" ? "execution.execution.cancel" : "execution.execution.read",
    ]);
    expect(await tell(less)).toEqual({ triggerId, position });
  },
);
