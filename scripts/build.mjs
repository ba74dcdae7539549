/**
 * `npm run build`: builds native/ and src/ from scratch and ignores the stamps. After `npm ci` this alone gives a
 * working program, dist/cli/main.js.
 */
import { build } from "./setup.mjs";

await build((line) => process.stderr.write(`build: ${line}\n`));
