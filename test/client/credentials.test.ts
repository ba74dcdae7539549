import { mkdtemp, rename, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { connect } from "../../src/client/connect.ts";
import { type Credentials, staticToken, tokenFile } from "../../src/client/credentials.ts";
import { exampleNode, exampleWritten, textSource } from "./support/examples.ts";
import { readMultipart } from "./support/multipart-reader.ts";
import { answerJson, clientFor, deferred, failureOf } from "./support/server.ts";

let folder = "";
let path = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "wsfs-credentials-"));
  path = join(folder, "token");
  return () => rm(folder, { recursive: true });
});

/** Credentials that hand out one token after the other, each when the one before is refused. */
function rotating(...tokens: readonly string[]): Credentials {
  let index = 0;
  const current = () => tokens[index] ?? "";
  return {
    token: async () => current(),
    renew: async (rejected) => {
      if (rejected === current() && index + 1 < tokens.length) index += 1;
      return current();
    },
  };
}

test("a refused token is renewed and the call repeated once", async () => {
  const seen: unknown[] = [];
  const client = await clientFor(
    (request, response) => {
      seen.push(request.headers.authorization);
      if (request.headers.authorization === "Bearer old") answerJson(response, 401, { title: "Expired" });
      else answerJson(response, 200, exampleNode());
    },
    { credentials: rotating("old", "new", "newer") },
  );
  expect((await client.getNode("n1")).id).toBe("n1");
  await client.getNode("n1");
  expect(seen).toEqual(["Bearer old", "Bearer new", "Bearer new"]);
});

test("a token that is refused again is not repeated a second time", async () => {
  let count = 0;
  const client = await clientFor(
    (_, response) => {
      count += 1;
      answerJson(response, 401, { title: "No" });
    },
    { credentials: rotating("a", "b", "c") },
  );
  expect(await failureOf(client.getNode("n1"))).toMatchObject({ code: "unauthorized", details: { status: 401 } });
  expect(count).toBe(2);
});

test("without another token a refused call is not repeated", async () => {
  let count = 0;
  const client = await clientFor(
    (_, response) => {
      count += 1;
      answerJson(response, 401, { title: "No" });
    },
    { credentials: staticToken("only") },
  );
  expect((await failureOf(client.getNode("n1"))).code).toBe("unauthorized");
  expect(count).toBe(1);
});

test("a refused upload is sent again whole", async () => {
  const bodies: string[] = [];
  const client = await clientFor(
    async (request, response) => {
      const parts = await readMultipart(request);
      bodies.push(String(parts[1]?.bytes));
      if (request.headers.authorization === "Bearer old") answerJson(response, 401, { title: "Expired" });
      else answerJson(response, 201, exampleWritten());
    },
    { credentials: rotating("old", "new") },
  );
  await client.upload("root", "a.txt", textSource("hello"));
  expect(bodies).toEqual(["hello", "hello"]);
});

test("neither log nor error ever holds a token, even when the gateway echoes it", async () => {
  const lines: string[] = [];
  const write = (fields: object, message: string) => {
    lines.push(JSON.stringify(fields) + message);
  };
  const log = { debug: write, info: write, warn: write, error: write, isLevelEnabled: () => true };
  const client = await clientFor(
    (request, response) => answerJson(response, 403, { title: `no: ${request.headers.authorization}` }),
    { log, credentials: staticToken("hush-hush") },
  );
  const error = await failureOf(client.getNode("n1"));
  expect(error.message).toContain("[token]");
  expect(lines.length).toBeGreaterThan(0);
  expect(`${error.message}${error.stack}${JSON.stringify(error.details)}${lines.join()}`).not.toContain("hush-hush");
});

test("nor does it hold a part of one: a text that is too long is cut off when the token is out of it", async () => {
  const token = `eyJ${"claims.".repeat(200)}`;
  const client = await clientFor(
    ({ headers: { authorization } }, response) =>
      answerJson(response, 403, { detail: `no: ${authorization}`, scope: `of ${authorization}` }),
    { credentials: staticToken(token) },
  );
  const error = await failureOf(client.getNode("n1"));
  expect(error.scope).toBe("of Bearer [token]");
  expect(error.message).toBe("getNode: 403 Forbidden: no: Bearer [token]: scope of Bearer [token]");
});

test("a token file is read again when it changes", async () => {
  await writeFile(path, "first\n");
  const credentials = tokenFile(path);
  expect(await credentials.token()).toBe("first");
  await writeFile(`${path}.new`, "  second \n");
  await rename(`${path}.new`, path);
  await vi.waitFor(async () => expect(await credentials.token()).toBe("second"), { timeout: 10_000 });
});

test("after a 401 a token file is read again at once, even if its time and size are the same", async () => {
  await writeFile(path, "first1");
  const when = new Date("2026-01-01T00:00:00Z");
  await utimes(path, when, when);
  const credentials = tokenFile(path);
  expect(await credentials.token()).toBe("first1");
  await writeFile(path, "second");
  await utimes(path, when, when);
  expect(await credentials.renew("first1")).toBe("second");
  expect(await credentials.token()).toBe("second");
});

test("a token file that holds the refused token has no other", async () => {
  await writeFile(path, "only");
  const credentials = tokenFile(path);
  expect(await credentials.token()).toBe("only");
  expect(await credentials.renew("only")).toBeUndefined();
});

test("many calls refused at once end with the one new token", async () => {
  await writeFile(path, "old");
  const credentials = tokenFile(path);
  await credentials.token();
  await writeFile(path, "new");
  const renewed = await Promise.all(Array.from({ length: 20 }, () => credentials.renew("old")));
  expect(new Set(renewed)).toEqual(new Set(["new"]));
});

test("an emptied token file keeps the token before: it is being rewritten", async () => {
  await writeFile(path, "good");
  const credentials = tokenFile(path);
  await credentials.token();
  await writeFile(path, "");
  expect(await credentials.renew("good")).toBeUndefined();
  expect(await credentials.token()).toBe("good");
});

test.each([
  ["missing", undefined, "ENOENT"],
  ["empty", " \n", "got nothing"],
  ["several lines long", "secret\nsecret", "got several words or lines"],
  ["not ASCII", "sécret", "got other characters"],
])("a token file that is %s is named, its content is not", async (_, content, message) => {
  if (content !== undefined) await writeFile(path, content);
  const client = await clientFor(() => expect.unreachable("a request was sent"), { credentials: tokenFile(path) });
  const error = await failureOf(client.getNode("n1"));
  expect(error.code).toBe("unauthorized");
  expect(error.message).toContain(path);
  expect(error.message).toContain(message);
  expect(error.message).not.toMatch(/s[eé]cret/);
});

test("a token file that comes back is used again", async () => {
  const credentials = tokenFile(path);
  await failureOf(credentials.token());
  await writeFile(path, "here");
  expect(await credentials.token()).toBe("here");
});

test("a call aborted while its token is waited for ends at once", async () => {
  const asked = deferred();
  const credentials: Credentials = {
    token() {
      asked.resolve();
      return new Promise(() => {});
    },
    renew: async () => undefined,
  };
  const client = await clientFor(() => expect.unreachable("a request was sent"), { credentials });
  const controller = new AbortController();
  const failure = failureOf(client.getNode("n1", { signal: controller.signal }));
  await asked.promise;
  controller.abort();
  expect(await failure).toMatchObject({ code: "aborted", isAmbiguous: false });
});

test("credentials that fail are unauthorized and say why", async () => {
  const credentials: Credentials = {
    token: () => Promise.reject(new Error("helper ended with 1")),
    renew: async () => undefined,
  };
  const client = await clientFor(() => expect.unreachable("a request was sent"), { credentials });
  const error = await failureOf(client.getNode("n1"));
  expect(error.code).toBe("unauthorized");
  expect(error.message).toContain("helper ended with 1");
  onTestFinished(() => client.close());
});

test("what is no source of tokens is refused when it is given, in words that do not show it", () => {
  const secret = "a-token-in-clear";
  // As a program without types may do.
  const given: readonly unknown[] = [secret, null, { token: secret }];
  for (const credentials of given as readonly Credentials[]) {
    const connecting = () => connect({ baseUrl: "http://127.0.0.1:1", credentials });
    expect(connecting).toThrow(/^(?!.*clear)connect: credentials: expected savedLogin.*staticToken/);
  }
});
