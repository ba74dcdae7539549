/** What the specification states of paths and scopes, said here once more: all other tests go by the contract's own tables. */
import { expect, test } from "vitest";
import { OPERATIONS } from "../../src/contract/operations.ts";
import { SCOPES } from "../../src/contract/scopes.ts";

const UPLOAD = ["node.node.create", "node.file.read", "node.node.update", "node.journal.create"];

test.each([
  ["listWorkspaces", "GET", "/v1/workspaces", ["account.workspace.read"]],
  ["listEngines", "GET", "/v1/engines", ["execution.execution.run"]],
  ["createInstallation", "POST", "/v1/installations", ["marketplace.install.create", "node.node.create"]],
  ["upload", "POST", "/v1/files/{path}", UPLOAD],
  ["getContent", "GET", "/v1/nodes/{nodeId}/content", ["node.file.read"]],
] as const)("%s is %s %s, with its scopes", (name, method, path, scopes) => {
  expect(OPERATIONS[name]).toMatchObject({ method, path });
  expect([...OPERATIONS[name].scopes].sort()).toEqual([...scopes].sort());
});

test.each([
  ["read a file", "getContent", "node.file.read"],
  ["create a file", "upload", "node.node.create"],
  ["update a file", "writeContent", "node.node.update"],
  ["delete a file", "deleteNode", "node.file.delete"],
  ["list a folder", "listNodes", "node.node.read-all"],
  ["record activity", "appendJournal", "node.journal.create"],
] as const)("to %s (%s) takes %s", (_, name, scope) => {
  expect(OPERATIONS[name].scopes).toContain(scope);
});

test("scopes are <area>.<resource>.<action>, and there is none for writing files", () => {
  for (const scope of SCOPES) expect(scope).toMatch(/^[a-z]+\.[a-z]+\.[a-z-]+$/);
  expect(SCOPES).not.toContain("node.file.write");
});

test("every path begins with the version, which is 1", () => {
  for (const { path } of Object.values(OPERATIONS)) expect(path).toMatch(/^\/v1\/[a-z-]+(\/|$)/);
});
