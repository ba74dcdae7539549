import { SignJWT } from "jose";
import { expect, test } from "vitest";
import { describeToken } from "../../src/client/token-claims.ts";

const key = new TextEncoder().encode("0123456789abcdef0123456789abcdef");

test("a JWT says its scopes, its end and its workspace", async () => {
  const token = await new SignJWT({ scope: "node.file.read  node.node.update", workspace: "docs" })
    .setProtectedHeader({ alg: "HS256" })
    .setExpirationTime(1_800_000_000)
    .sign(key);
  expect(describeToken(token)).toEqual({
    scopes: ["node.file.read", "node.node.update"],
    expiresAt: 1_800_000_000_000,
    workspace: "docs",
  });
});

test("a JWT that says nothing of these is described as such", async () => {
  const token = await new SignJWT({ scope: 5, workspace: "" }).setProtectedHeader({ alg: "HS256" }).sign(key);
  expect(describeToken(token)).toEqual({});
});

test("no scopes is not the same as scopes unknown", async () => {
  const token = await new SignJWT({ scope: "" }).setProtectedHeader({ alg: "HS256" }).sign(key);
  expect(describeToken(token)).toEqual({ scopes: [] });
});

const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
test.each([
  "",
  "opaque",
  "a.b.c",
  "..",
  `${part({})}.${part([])}.x`,
  `${part({})}.${part({})}`,
  `${part(1)}.${part({})}.x`,
])("%j is opaque", (token) => {
  expect(describeToken(token)).toBeUndefined();
});
