/**
 * `npm run soak -- gateway [KILLS]`: the kills of test/gateway/crash.test.ts, as many as asked for, on several
 * gateways at once: one loads while others are written to. GATEWAY_SEED changes the seed, GATEWAY_LANES how many
 * gateways there are; the first has the seed, each other one the next.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import path from "node:path";
import { bundleGateway } from "../support/gateway-bundle.ts";
import { killGateway } from "../support/gateway-kills.ts";

function count(text: string | undefined, fallback: number, what: string): number {
  const value = Number(text ?? fallback);
  if (!Number.isInteger(value) || value < 1) throw new Error(`${what}: expected a number, got ${text}`);
  return value;
}

const kills = count(process.argv[2], 1000, "kills");
const seed = count(process.env.GATEWAY_SEED, 1, "GATEWAY_SEED");
const lanes = Math.min(kills, count(process.env.GATEWAY_LANES, 2 * availableParallelism(), "GATEWAY_LANES"));
const folder = await mkdtemp(path.join(tmpdir(), "wsfs-soak-"));
process.stdout.write(`gateway: ${kills} kills, GATEWAY_SEED=${seed}, GATEWAY_LANES=${lanes}, data in ${folder}\n`);
const bundle = await bundleGateway(folder);
const started = performance.now();
let killed = 0;
const elapsed = () => ((performance.now() - started) / 1000).toFixed(0);
const onKill = () => {
  killed += 1;
  if (killed % 50 === 0) process.stdout.write(`  ${killed} kills, ${elapsed()} s\n`);
};
const reports = await Promise.all(
  Array.from({ length: lanes }, async (_, lane) => {
    const share = Math.floor(kills / lanes) + (lane < kills % lanes ? 1 : 0);
    const own = { dataDir: path.join(folder, String(lane)), kills: share, seed: seed + lane };
    try {
      return await killGateway({ ...own, bundle, onKill });
    } catch (error) {
      throw new Error(`with GATEWAY_SEED=${own.seed} GATEWAY_LANES=1, ${share} kills`, { cause: error });
    }
  }),
);
// Kept where something was not as it should be.
await rm(folder, { recursive: true, force: true });
const total = (name: "answered" | "unanswered" | "happened" | "repeated") =>
  reports.reduce((sum, report) => sum + report[name], 0);
const deaths: Record<string, number> = {};
for (const own of reports) {
  for (const [way, count] of Object.entries(own.deaths)) deaths[way] = (deaths[way] ?? 0) + count;
}
const report = {
  kills,
  answered: total("answered"),
  unanswered: total("unanswered"),
  happened: total("happened"),
  repeated: total("repeated"),
  deaths,
};
process.stdout.write(`${JSON.stringify(report)}, ${elapsed()} s\n`);
