import { expect, test } from "vitest";
import { createTestCore } from "../support/gateway-core.ts";

const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

test("a signature has one spelling", async () => {
  const core = createTestCore();
  const token = core.token();
  const [head = "", payload = "", signature = ""] = token.split(".");
  const others = new Set([
    // Of the last digit two bits are none of the signature's.
    ...[...DIGITS].map((digit) => signature.slice(0, -1) + digit),
    `${signature}=`,
    `${signature}.`,
    `=${signature}`,
    `${signature.slice(0, 5)}=${signature.slice(5)}`,
    signature.replaceAll("-", "+").replaceAll("_", "/").concat("="),
  ]);
  others.delete(signature);
  const status = async (spelling: string) =>
    (await core.call("GET", "/v1/nodes", { token: `${head}.${payload}.${spelling}` })).status;
  const sameBytes = [...others].filter((text) => Buffer.from(text, "base64url").toString("base64url") === signature);
  expect(sameBytes.length).toBeGreaterThan(4);
  for (const spelling of others) expect([spelling, await status(spelling)]).toEqual([spelling, 401]);
  expect(await status(signature)).toBe(200);
});
