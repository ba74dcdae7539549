import { expect, it } from "vitest";
import { timesAreExact } from "../../src/daemon/kernel.ts";

it("knows by its release whether each change of a file has a time of its own", () => {
  const exact = ["6.13.0", "6.18.44-fc", "7.0", "10.1.2-1-amd64"];
  const coarse = ["6.12.99-1", "6.9", "5.19.0", "unknown"];
  expect(exact.map(timesAreExact)).toEqual(exact.map(() => true));
  expect(coarse.map(timesAreExact)).toEqual(coarse.map(() => false));
});
