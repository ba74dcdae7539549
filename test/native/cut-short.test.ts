/** A file that is cut short while it is copied. */
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { compiled } from "../../src/lib/compiled.ts";
import { compilePreload } from "../support/preload.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const COPY = `const { openSync } = require("node:fs");
  const [addon, from, to] = process.argv.slice(1);
  const copied = require(addon).clone(openSync(from, "r"), openSync(to, "wx+"));
  copied.then(() => console.log("copied"), (error) => console.log(error.code));`;

it("is copied as far as it is there: whoever copies it looks whether it is what it was", async () => {
  const folder = await temporaryFolder();
  const [from, to] = [join(folder, "from"), join(folder, "to")];
  const preloaded = compilePreload(join(import.meta.dirname, "cut-short.c"), join(folder, "cut-short.so"));
  writeFileSync(from, Buffer.alloc(100_000, "x"));
  const env = { ...process.env, LD_PRELOAD: preloaded };
  const said = execFileSync(process.execPath, ["-e", COPY, compiled("wsfs.node"), from, to], { env, encoding: "utf8" });
  // The disk may know reflinks.
  expect([said, readFileSync(from).length === 0 || readFileSync(to).length === 100_000]).toEqual(["copied\n", true]);
});
