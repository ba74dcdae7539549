/**
 * A gateway as a process of its own, for tests that kill it. Arguments: data folder. Loads what it
 * needs, waits for a line on standard input, starts, and prints its address as one JSON line.
 */
import { once } from "node:events";
import { startGateway } from "../../src/gateway/start.ts";

const dataDir = process.argv[2];
if (dataDir === undefined) throw new Error("expected a data folder");
await once(process.stdin, "data");
process.stdin.destroy();
const gateway = await startGateway({ dataDir });
const token = await gateway.issueToken({ workspace: "workspace", ttlSeconds: 3600 });
process.stdout.write(`${JSON.stringify({ baseUrl: gateway.baseUrl, token })}\n`);
process.on("SIGTERM", () => void gateway.close().then(() => process.exit(0)));
