/**
 * `npm run build`: builds native/ and src/ from scratch and ignores the stamps. After `npm ci` this alone gives a
 * working program, dist/cli/main.js.
 */
import { buildNative, compile } from "./setup.mjs";

const progress = (line) => process.stderr.write(`build: ${line}\n`);
buildNative(progress);
compile(progress, { afresh: true });
