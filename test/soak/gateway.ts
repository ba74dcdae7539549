/** The kills of test/gateway/crash.test.ts, as many as asked for. Argument: how many. GATEWAY_SEED changes the seed. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { killGateway } from "../support/gateway-kills.ts";

const kills = Number(process.argv[2] ?? 1000);
if (!Number.isInteger(kills) || kills < 1) throw new Error(`expected a number of kills, got ${process.argv[2]}`);
const seed = Number(process.env.GATEWAY_SEED ?? 1);
const dataDir = await mkdtemp(path.join(tmpdir(), "wsfs-soak-"));
process.stdout.write(`gateway: ${kills} kills, GATEWAY_SEED=${seed}, data in ${dataDir}\n`);
const started = performance.now();
const report = await killGateway({
  dataDir,
  kills,
  seed,
  onKill(kill) {
    if (kill % 50 !== 0) return;
    process.stdout.write(`  ${kill} kills, ${Math.round((performance.now() - started) / 1000)} s\n`);
  },
});
// Kept where something was not as it should be.
await rm(dataDir, { recursive: true, force: true });
process.stdout.write(`${JSON.stringify(report)}\n`);
