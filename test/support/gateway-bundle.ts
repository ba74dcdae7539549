/**
 * The gateway's process as one file of code with the machine code V8 made of it: a process that is
 * killed after a moment would spend most of its life on finding and compiling some hundred modules.
 */
import path from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";
import { callGateway, uploadBody } from "./gateway-calls.ts";
import { warmGateway } from "./gateway-child.ts";

const ENTRY = new URL("gateway-process.ts", import.meta.url);
/** Loaded when they are asked for, or an addon. */
const NOT_WITHIN = [/^better-sqlite3$/, /^@fastify\/swagger/];

/** Written into the folder; answers its path. */
export async function bundleGateway(folder: string): Promise<string> {
  const file = path.join(folder, "gateway.cjs");
  const build = await rolldown({
    input: fileURLToPath(ENTRY),
    platform: "node",
    external: NOT_WITHIN,
    // What modules are looked for from.
    transform: { define: { "import.meta.url": JSON.stringify(ENTRY.href) } },
    logLevel: "silent",
  });
  await build.write({ file, format: "cjs", codeSplitting: false });
  await build.close();
  // One that has answered, so that what it takes to answer is among what is kept.
  const gateway = await warmGateway(file, path.join(folder, "first")).start();
  if (gateway === undefined) throw new Error("The gateway did not start.");
  const upload = uploadBody({}, Buffer.alloc(100_000));
  await callGateway(gateway, "POST", "/v1/files/folder/file", { ...upload });
  await callGateway(gateway, "GET", "/v1/nodes?path=/&recursive=true");
  await callGateway(gateway, "GET", "/v1/journal");
  gateway.end("SIGTERM");
  await gateway.ended;
  return file;
}
