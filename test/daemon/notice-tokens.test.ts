import { expect, it } from "vitest";
import { noticeTokens, watchTokens } from "../../src/daemon/notice-tokens.ts";
import { createVirtualClock } from "../support/virtual-clock.ts";

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

it("tells of it while nobody asks for a token, and while none can be had for a time", async () => {
  const clock = createVirtualClock();
  const told: string[] = [];
  let token: string | undefined = "a";
  const read = async () => token ?? Promise.reject(new Error("the file is gone"));
  const credentials = noticeTokens({ token: read, renew: async () => token }, (one) => told.push(one));
  await credentials.token();
  const end = watchTokens(credentials, clock);
  token = undefined;
  await clock.advance(10_000);
  token = "b";
  await clock.advance(10_000);
  expect(told).toEqual(["b"]);
  end();
  token = "c";
  await clock.advance(10_000);
  expect(told).toEqual(["b"]);
});
