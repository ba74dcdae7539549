import { expect, it } from "vitest";
import { noticeTokens } from "../../src/daemon/notice-tokens.ts";

it("tells of a token that is another one than before, however it came, and only once", async () => {
  const told: string[] = [];
  let token = "a";
  const credentials = noticeTokens({ token: async () => token, renew: async () => token }, (one) => told.push(one));
  expect(await credentials.token()).toBe("a");
  expect(await credentials.token()).toBe("a");
  token = "b";
  expect(await credentials.token()).toBe("b");
  token = "c";
  expect(await credentials.renew("b")).toBe("c");
  expect(await credentials.token()).toBe("c");
  expect(told).toEqual(["b", "c"]);
});
