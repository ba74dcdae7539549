/** Installing Debian packages, with an apt-get that cannot have one of them. */
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { run } from "./child.ts";

const SCRIPT = fileURLToPath(new URL("../../scripts/debian.mjs", import.meta.url));

const APT_GET = `#!/bin/sh
case "$*" in
  *update*) exit 0 ;;
  *none*) exit 100 ;;
esac
while [ "$1" != --no-install-recommends ]; do shift; done
shift
echo "$@" >> "\${0%/*}/installed"
`;

test("one package that cannot be had does not keep the others away", async () => {
  const folder = mkdtempSync(join(tmpdir(), "wsfs-debian-"));
  try {
    writeFileSync(join(folder, "apt-get"), APT_GET);
    chmodSync(join(folder, "apt-get"), 0o755);
    const missing = [
      { name: "one", brings: "one", when: "build" },
      { name: "none", brings: "none", when: "test" },
      { name: "two", brings: "two", when: "run" },
    ];
    const script = `process.getuid = () => 0;
      const { installDebianPackages } = await import(${JSON.stringify(SCRIPT)});
      installDebianPackages(${JSON.stringify(missing)}, () => {}, (line) => { throw new Error(line); });`;
    const { code, stderr } = await run(process.execPath, ["--input-type=module", "-e", script], {
      env: { PATH: folder },
    });
    expect([code, stderr]).toEqual([
      0,
      'setup: missing: none (none); "apt-get install" failed with exit code 100. Install with: sudo apt-get install -y none\n',
    ]);
    expect(readFileSync(join(folder, "installed"), "utf8")).toBe("one\ntwo\n");
  } finally {
    rmSync(folder, { recursive: true });
  }
});
