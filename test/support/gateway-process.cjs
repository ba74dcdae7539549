/**
 * Runs a bundle that gateway-bundle.ts made. Its machine code is kept beside it by the first one that
 * ends by itself. Arguments: the bundle, and what it takes itself.
 */
"use strict";
const { existsSync, readFileSync, writeFileSync } = require("node:fs");
const { createRequire } = require("node:module");
const { Script } = require("node:vm");

const [bundle] = process.argv.splice(2, 1);
const kept = `${bundle}.code`;
const cachedData = existsSync(kept) ? readFileSync(kept) : undefined;
const source = `(function (require, exports, module) {${readFileSync(bundle, "utf8")}\n})`;
const script = new Script(source, { filename: bundle, cachedData });
if (cachedData === undefined) process.on("exit", () => writeFileSync(kept, script.createCachedData()));
const module_ = { exports: {} };
script.runInThisContext()(createRequire(__filename), module_.exports, module_);
