/** `--profile FILE`: a file of an earlier release is taken, and one line says how. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { readProfile } from "../../src/cli/mount.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

afterEach(() => vi.restoreAllMocks());

test.each([
  ['{"name":"now","tier":"plain"}', []],
  [
    '{"name":"before","features":{"journal":false,"hashes":false}}',
    [
      'wsfs: profile before: its features are those of an earlier release; taken as "tier": "plain", "features": { "hashes": false }\n',
    ],
  ],
])("%s", async (text, expected) => {
  const said: unknown[] = [];
  vi.spyOn(process.stderr, "write").mockImplementation((line) => said.push(line) > 0);
  const file = join(await temporaryFolder(), "p.json");
  writeFileSync(file, text);
  expect(readProfile(file)).toEqual({ profile: { source: file, text } });
  expect(said).toEqual(expected);
});
