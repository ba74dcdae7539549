import { describe, expect, it } from "vitest";
import { crashesAMinute } from "../../src/cli/environment.ts";
import { EXIT } from "../../src/cli/failure.ts";

describe("WSFS_CRASHES", () => {
  it.each([
    [undefined, 5],
    ["", 5],
    ["0", 0],
    ["1000", 1000],
  ])("%j is %d crashes within a minute", (text, count) => {
    expect(crashesAMinute(text === undefined ? {} : { WSFS_CRASHES: text })).toBe(count);
  });

  it.each(["many", "-1", "1.5", "1e3", " ", "5 ", "99999999999", "2147483648"])("%j is refused in one line", (text) => {
    const refused = expect.objectContaining({
      exitCode: EXIT.usage,
      message: `WSFS_CRASHES: expected a number from 0 to 2147483647, got '${text}'`,
    });
    expect(() => crashesAMinute({ WSFS_CRASHES: text })).toThrow(refused);
  });
});
