import fs from "node:fs";
import { expect, test } from "vitest";
import { hasCode, isUnsupported, systemError, withCode } from "../../src/lib/system-error.ts";

test("an error made here is as one of node:fs", () => {
  const path = "/nowhere/at all";
  let real: unknown;
  try {
    fs.statSync(path);
  } catch (error) {
    real = error;
  }
  const made = systemError("ENOENT", "stat", path);
  expect({ ...made, message: made.message }).toEqual({ ...(real as Error), message: (real as Error).message });
});

test("both names of error 95 are the same error, and say unsupported", () => {
  expect(systemError("EOPNOTSUPP", "fallocate").errno).toBe(systemError("ENOTSUP", "fallocate").errno);
  for (const code of ["EOPNOTSUPP", "ENOTSUP", "ENOSYS"]) expect(isUnsupported(systemError(code, "x"))).toBe(true);
  expect(isUnsupported(systemError("ENOSPC", "x"))).toBe(false);
});

test("errors that libuv has no name for get theirs", () => {
  const unnamed = Object.assign(new Error("Unknown system error -122"), {
    errno: -122,
    code: "Unknown system error -122",
  });
  expect(withCode(unnamed).code).toBe("EDQUOT");
  expect(systemError("EDQUOT", "write").errno).toBe(-122);
  expect(withCode(systemError("EIO", "write")).code).toBe("EIO");
});

test("a code that is none is refused, and only errors have codes", () => {
  expect(() => systemError("EWRONG", "x")).toThrow('got "EWRONG"');
  expect(hasCode({ code: "EIO" }, "EIO")).toBe(false);
  expect(hasCode(systemError("EIO", "x"), "ENOENT", "EIO")).toBe(true);
});
