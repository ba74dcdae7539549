/**
 * A gateway as a process of its own, for tests that kill it; gateway-bundle.ts makes one file of it.
 * Argument: data folder. Waits for a line on standard input, a JSON object that says at which fault
 * point to die as by kill -9 and at which time of coming by, if at any. Then starts, and prints its
 * address as one JSON line.
 */
import { once } from "node:events";
import { startGateway } from "../../src/gateway/start.ts";
import { systemClock } from "../../src/lib/system-clock.ts";

const dataDir = process.argv[2];
if (dataDir === undefined) throw new Error("expected a data folder");

async function serve(folder: string): Promise<void> {
  const [line] = await once(process.stdin, "data");
  process.stdin.destroy();
  const { label, times }: { label?: string; times?: number } = JSON.parse(String(line));
  let rest = times ?? 1;
  systemClock.step = (passed) => {
    if (passed !== label) return;
    rest -= 1;
    if (rest === 0) process.kill(process.pid, "SIGKILL");
  };
  const gateway = await startGateway({ dataDir: folder });
  const token = await gateway.issueToken({ workspace: "workspace", ttlSeconds: 3600 });
  process.stdout.write(`${JSON.stringify({ baseUrl: gateway.baseUrl, token })}\n`);
  process.on("SIGTERM", () => void gateway.close().then(() => process.exit(0)));
}

void serve(dataDir);
