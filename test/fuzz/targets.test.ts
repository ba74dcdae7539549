/** Each fuzz target for some seconds; longer by `npm run soak -- fuzz 60m`. */
import { describe, expect, it } from "vitest";
import { SEED } from "../support/seed.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { TARGETS } from "./targets.ts";

const SECONDS = 2;

describe.each(TARGETS)("$name", ({ run, lacks }) => {
  it.skipIf(lacks !== undefined)(`holds for ${SECONDS} s of inputs (${lacks ?? "all it takes is there"})`, async () => {
    expect(await run(await temporaryFolder(), { seconds: SECONDS, seed: SEED })).toMatch(/^[1-9]\d* /);
  });
});
