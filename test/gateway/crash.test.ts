/** What was answered with success is there, whenever the gateway is killed. More kills: `npm run soak -- gateway N`. */
import path from "node:path";
import { expect, test } from "vitest";
import { bundleGateway } from "../support/gateway-bundle.ts";
import { killGateway } from "../support/gateway-kills.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const KILLS = 25;

test(`everything answered is there after each of ${KILLS} kills, and nothing twice`, { timeout: 900_000 }, async () => {
  const seed = Number(process.env.GATEWAY_SEED ?? 1);
  const folder = await temporaryFolder();
  const bundle = await bundleGateway(folder);
  const report = await killGateway({ bundle, dataDir: path.join(folder, "data"), kills: KILLS, seed });
  console.log(`gateway killed: GATEWAY_SEED=${seed} ${JSON.stringify(report)}`);
  expect(report.answered).toBeGreaterThanOrEqual(KILLS);
  // Each writer is in the middle of something when the kill comes.
  expect(report.unanswered).toBeGreaterThan(KILLS);
});
