/** What programs without types hand over: each wrong argument is refused in words, and nothing is sent. */
import { afterAll, describe, expect, test } from "vitest";
import type { Client } from "../../../src/client/client.ts";
import { type ConnectOptions, connect, type Gateway } from "../../../src/client/connect.ts";
import { type Credentials, staticToken, tokenFile } from "../../../src/client/credentials.ts";
import { RemoteError } from "../../../src/client/errors.ts";
import { createHttpTransport } from "../../../src/client/http-transport.ts";
import * as tables from "../../../src/client/sdk/arguments.ts";
import { CALLS } from "../../../src/client/sdk/call-arguments.ts";
import { tokenCommand } from "../../../src/client/token-command.ts";
import type { Transport } from "../../../src/contract/http.ts";

let sent = 0;
const transport: Transport = {
  async send() {
    sent += 1;
    throw new RemoteError("malformed", "something was sent");
  },
  async close() {},
};
const options: ConnectOptions = { baseUrl: "http://never.invalid", credentials: staticToken("token"), transport };
const gateway = connect(options);
const client = await gateway.calls();
afterAll(() => gateway.close());

const groups: Record<string, readonly [calls: Gateway[keyof Gateway] | Client, table: Record<string, tables.Takes>]> = {
  workspaces: [gateway.workspaces, tables.WORKSPACES],
  nodes: [gateway.nodes, tables.NODES],
  files: [gateway.files, tables.FILES],
  versions: [gateway.versions, tables.VERSIONS],
  journal: [gateway.journal, tables.JOURNAL],
  account: [gateway.account, tables.ACCOUNT],
  engines: [gateway.engines, tables.ENGINES],
  installations: [gateway.installations, tables.INSTALLATIONS],
  executions: [gateway.executions, tables.EXECUTIONS],
  apiKeys: [gateway.apiKeys, tables.API_KEYS],
  triggers: [gateway.triggers, tables.TRIGGERS],
  calls: [client, CALLS],
};

/** What the call fails with, in whatever way it answers. */
async function failure(group: string, call: string, given: readonly unknown[]): Promise<unknown> {
  const calls = groups[group]?.[0];
  const method: unknown = Reflect.get(Object(calls), call);
  if (typeof method !== "function") throw new Error(`there is no ${group}.${call}`);
  const answered: unknown = Reflect.apply(method, calls, given);
  const waited = Object(answered) as Partial<PromiseLike<unknown> & AsyncIterable<unknown>>;
  try {
    if (waited[Symbol.asyncIterator] === undefined) await answered;
    else for await (const _ of answered as AsyncIterable<unknown>) break;
  } catch (error) {
    return error;
  }
  return undefined;
}

async function refused(group: string, call: string, given: readonly unknown[], field: string, reason: string) {
  const before = sent;
  const error = await failure(group, call, given);
  expect(error).toBeInstanceOf(RemoteError);
  const message = expect.stringContaining(`${group}.${call}: ${field}: ${reason}`);
  expect(error).toMatchObject({ code: "invalid", field, message, isTransient: false, isAmbiguous: false });
  expect(sent).toBe(before);
}

const CONTENT = { size: 0, async *read() {} };
/** Of each name, something that is right. */
const RIGHT: Record<string, unknown> = {
  ...{ nodeId: "n", parentId: "n", otherId: "n", other: "n", name: "n", path: "/p", nameOrId: "w", kind: "read" },
  ...{ content: "x", source: { copyOf: "n" }, reference: { copyOf: "n" }, change: {}, patch: {}, position: 0 },
  ...{ account: "ada", role: "viewer", engine: "e", installationId: "i", executionId: "x", keyId: "k", triggerId: "t" },
  ...{
    at: "2026-01-31T12:00:00Z",
    after: 0,
    scopes: ["node.file.read"],
    description: { name: "t", engine: "e", on: {} },
  },
};
const rightOf = (group: string, name: string) => (group === "calls" && name === "content" ? CONTENT : RIGHT[name]);

const every = Object.entries(groups).flatMap(([group, [, table]]) =>
  Object.entries(table).map(([call, { checks }]) => [group, call, Object.keys(checks)] as const),
);

describe.each(every)("%s.%s", (group, call, names) => {
  const rightUpTo = (index: number) => names.slice(0, index).map((name) => rightOf(group, name));
  const last = names.length - 1;

  test("names an option it does not know", async () => {
    expect(names[last]).toBe("options");
    await refused(group, call, [...rightUpTo(last), { pathh: "/reports" }], "pathh", "unknown; expected signal");
  });

  test("takes nothing but a plain object for options", async () => {
    for (const given of [
      "/reports",
      null,
      3,
      ["/reports"],
      new Map([["path", "/reports"]]),
      Promise.resolve({}),
      () => {},
    ]) {
      await refused(group, call, [...rightUpTo(last), given], "options", "expected a plain object, got ");
    }
    await refused(group, call, [...rightUpTo(last), {}, "more"], "options", `expected ${names.length} arguments, got `);
  });

  test("names each argument that is missing, or of another kind", async () => {
    for (const [index, name] of names.slice(0, last).entries()) {
      const wrong = name === "workspaceId" ? [null, 3] : [undefined, null, Number.NaN, {}];
      for (const given of wrong) {
        // What a change leaves out stays; there is always a source.
        if (name === "change" || name === "patch") {
          if (typeof given === "object" && given !== null) continue;
        }
        const error = await failure(group, call, [...rightUpTo(index), given]);
        expect(error, `${name}: ${String(given)}`).toMatchObject({ code: "invalid", details: { isUnsent: true } });
        expect((error as RemoteError).message).toMatch(
          new RegExp(`^${group}\\.${call}: ${name}(\\.copyOf|\\.name)?: expected `),
        );
      }
    }
  });

  test("sends what is right", async () => {
    const was = sent;
    expect(await failure(group, call, rightUpTo(last))).toMatchObject({
      message: expect.stringContaining("something was sent"),
    });
    expect(sent).toBe(was + 1);
  });
});

test.each<[group: string, call: string, given: readonly unknown[], field: string, reason: string]>([
  ["nodes", "list", [{ path: "" }], "path", 'expected well-formed text that is not empty, got ""'],
  ["nodes", "list", [{ path: null }], "path", "expected well-formed text that is not empty, got null"],
  [
    "nodes",
    "list",
    [{ path: ["a"] }],
    "path",
    "expected well-formed text that is not empty, got an object of class Array",
  ],
  ["nodes", "list", [{ parentId: "" }], "parentId", "expected"],
  [
    "nodes",
    "list",
    [{ workspace: "\ud800" }],
    "workspace",
    "expected well-formed text that is not empty, got text with half",
  ],
  ["nodes", "list", [{ recursive: "true" }], "recursive", "expected true or false, got text"],
  ["nodes", "list", [{ pageSize: "5" }], "pageSize", "expected a whole number from 1 to 1000, got text"],
  ["nodes", "list", [{ pageSize: 1001 }], "pageSize", "expected a whole number from 1 to 1000, got 1001"],
  [
    "nodes",
    "list",
    [{ at: new Date("?") }],
    "at",
    "expected a Date, or a moment in ISO 8601 with its zone, got a Date without",
  ],
  ["nodes", "list", [{ at: "yesterday" }], "at", "expected a Date"],
  [
    "nodes",
    "list",
    [{ signal: new EventTarget() }],
    "signal",
    "expected an AbortSignal, got an object of class EventTarget",
  ],
  ["nodes", "get", ["n", { retries: true }], "retries", "expected false, got true"],
  ["nodes", "update", ["n", { nmae: "x" }], "change.nmae", "unknown; expected parentId, name, attributes"],
  [
    "nodes",
    "update",
    ["n", { attributes: { mode: Number.NaN } }],
    "change.attributes",
    "expected a plain object of JSON values",
  ],
  ["nodes", "update", ["n", {}, { ifRevision: "3" }], "ifRevision", "expected a whole number from 0, got text"],
  ["nodes", "copy", ["n", "x", { copyOf: "a", versoin: "b" }], "source.versoin", "unknown; expected copyOf, version"],
  ["files", "upload", ["/a", Promise.resolve("x")], "content", "expected text, bytes, a Blob"],
  ["files", "upload", ["/a", new Uint16Array(2)], "content", "expected text, bytes, a Blob"],
  ["files", "upload", ["/a", { path: "/x", size: 3 }], "content", "expected text, bytes, a Blob"],
  ["files", "upload", ["/a", "x", { size: -1 }], "size", "expected a whole number from 0, got -1"],
  ["files", "upload", ["/a", "x", { contentHash: "ABC" }], "contentHash", "expected 64 digits of lower-case hex"],
  ["files", "upload", ["/a", "x", { attributes: new Map() }], "attributes", "expected a plain object of JSON values"],
  ["files", "read", ["n", { range: { start: 3 } }], "range.end", "expected a whole number from 1, got undefined"],
  ["files", "download", ["n", "x", { onProgress: true }], "onProgress", "expected a function, got true"],
  ["journal", "follow", [{ after: -1 }], "after", "expected a whole number from 0, got -1"],
  ["journal", "list", [{ after: "7" }], "after", "expected a whole number from 0, got text"],
])("%s.%s: %j", refused);

test.each([0, "1", undefined, Number.NaN])("a page has a number from 1: not %j", async (pageNo) => {
  const page = gateway.nodes.list().page(pageNo as number);
  await expect(page).rejects.toMatchObject({ code: "invalid", field: "pageNo" });
});

test("content that a function was to give, and is none, is not sent again and again", async () => {
  const reading: Transport = {
    async send({ body }) {
      sent += 1;
      if (body?.kind === "upload") for await (const _ of body.content.read());
      throw new Error("its content was read");
    },
    async close() {},
  };
  const { files } = connect({ ...options, transport: reading });
  const before = sent;
  const content = (() => "text") as unknown as () => AsyncIterable<string>;
  await expect(files.upload("/a", content)).rejects.toMatchObject({ code: "aborted" });
  expect(sent - before).toBe(1);
});

describe("what builds something throws", () => {
  const wrong = (given: object) => () => connect({ ...options, ...given } as ConnectOptions);
  test.each<[given: object, message: string]>([
    [{ baseURL: "http://a" }, "connect: baseURL: unknown; expected baseUrl, credentials, workspace, "],
    [{ workspce: "a" }, "connect: workspce: unknown"],
    [{ baseUrl: undefined }, "connect: baseUrl: expected well-formed text that is not empty, got undefined"],
    [{ workspace: "" }, 'connect: workspace: expected well-formed text that is not empty, got ""'],
    [{ retries: true }, "connect: retries: expected a plain object, got true"],
    [{ retries: { times: 3 } }, "connect: retries.times: unknown; expected tries, "],
    [{ limits: { connect: 0 } }, "connect: limits.connect: expected milliseconds, more than 0, got 0"],
    [{ connections: 0 }, "connect: connections: expected a whole number from 1, got 0"],
    [{ log: () => {} }, "connect: log: expected a logger, got a function"],
    [{ profile: "file.json" }, "connect: profile: expected an object, got text"],
  ])("%j", (given, message) => {
    expect(wrong(given)).toThrow(TypeError);
    expect(wrong(given)).toThrow(message);
  });

  test("without options, and the sources of tokens and the transport too", () => {
    const none = undefined as never;
    expect(() => connect(none)).toThrow("connect: options: expected a plain object, got undefined");
    expect(() => staticToken(none)).toThrow("token: expected one word of visible ASCII characters, got undefined");
    expect(() => tokenFile(none)).toThrow(
      "tokenFile: path: expected well-formed text that is not empty, got undefined",
    );
    expect(() => tokenCommand(none)).toThrow("tokenCommand: command: expected well-formed text");
    expect(() => tokenCommand("cat", "token" as never)).toThrow(
      "tokenCommand: args: expected a list of texts, got text",
    );
    expect(() => tokenCommand("cat", [], { timeout: 3 } as never)).toThrow("tokenCommand: timeout: unknown");
    expect(() => createHttpTransport({ baseUrl: "http://a", limit: {} } as never)).toThrow("limit: unknown");
  });

  test("a token that credentials of one's own give is one", async () => {
    const credentials = { token: async () => undefined, renew: async () => undefined } as unknown as Credentials;
    const { nodes } = connect({ ...options, credentials });
    const before = sent;
    await expect(nodes.get("n")).rejects.toMatchObject({
      code: "unauthorized",
      message: expect.stringContaining("undefined"),
    });
    expect(sent).toBe(before);
  });
});
