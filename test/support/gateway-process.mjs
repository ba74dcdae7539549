/**
 * A gateway as a process of its own, for tests that kill it. Arguments: data folder, module to start
 * it with. Loads what it needs, waits for a line on standard input, starts, and prints its address as
 * one JSON line. Plain JavaScript: with the compiled module nothing has to be compiled at each start.
 */
import { once } from "node:events";

const [dataDir, module] = process.argv.slice(2);
if (dataDir === undefined || module === undefined) throw new Error("expected a data folder and a module");
const { startGateway } = await import(module);
await once(process.stdin, "data");
process.stdin.destroy();
const gateway = await startGateway({ dataDir });
const token = await gateway.issueToken({ workspace: "workspace", ttlSeconds: 3600 });
process.stdout.write(`${JSON.stringify({ baseUrl: gateway.baseUrl, token })}\n`);
process.on("SIGTERM", () => void gateway.close().then(() => process.exit(0)));
