/**
 * `npm start [-- DIR ...]`: set-up, then `wsfs start DIR ...` as if it had been called directly.
 */
import { runNode } from "./child.mjs";
import { mainFile, setup } from "./setup.mjs";

await setup();
// npm runs scripts in the project's folder. A relative DIR counts from the user's folder.
const stoodIn = process.env.npm_lifecycle_event === "start" ? process.env.INIT_CWD : undefined;
const args = [mainFile, "start", ...process.argv.slice(2)];
process.exitCode = await runNode(args, { cwd: stoodIn ?? process.cwd() });
