import { expect, it } from "vitest";
import { explicitArguments } from "../../src/cli/arguments.ts";
import { FLAGS, type Flag } from "../../src/cli/flags.ts";

const switches = Object.entries(FLAGS).flatMap(([name, flag]: [string, Flag]) =>
  flag.type === "switch" ? [name] : [],
);

it.each([...switches, "help", "version"])("--%s takes no value but a truth", (name) => {
  for (const [given, meant] of [
    ["1", true],
    ["true", true],
    ["yes", true],
    ["0", false],
    ["off", false],
  ] as const) {
    expect(explicitArguments([`--${name}=${given}`])).toEqual([`--${name}=${meant}`]);
  }
  for (const given of ["x", "", "2", "tru"]) {
    expect(() => explicitArguments(["mount", "d", `--${name}=${given}`])).toThrow(
      `--${name}: expected no value, or 1 or 0, got "${given}"`,
    );
  }
  expect(() => explicitArguments([`--${name}`, `--${name}=0`])).toThrow(`--${name} may be given only once`);
});

it("leaves everything else to the parser", () => {
  const argv = ["mount", "d", "--workspace", "a=b", "--read-only", "--cache-size=1", "--cache-size=2", "--new=x", "-x"];
  expect(explicitArguments(argv)).toEqual(argv);
  expect(explicitArguments(["--", "--read-only=x", "--read-only=x"])).toEqual(["--", "--read-only=x", "--read-only=x"]);
});

it("keeps the word after an option whose value may be left out apart from it", () => {
  expect(explicitArguments(["umount", "--drain", "d"])).toEqual(["umount", "--drain=", "d"]);
  expect(explicitArguments(["umount", "--drain=7", "d"])).toEqual(["umount", "--drain=7", "d"]);
});
