/**
 * `npm run soak -- crash-steps [LABEL ...]`: real processes die at every fault point of daemon and gateway that one
 * mount comes by, as test/mount/crash-steps.test.ts has a few. LABEL: only at those.
 */
import { allDaemonLabels, allGatewayLabels, killDaemonAt, killGatewayAt } from "../mount/support/crash-steps.ts";
import { createPlace, type Place } from "../support/wsfs.ts";

const only = process.argv.slice(2);
const chosen = (labels: readonly string[]) => labels.filter((label) => only.length === 0 || only.includes(label));
const daemon = chosen(allDaemonLabels());
const gateway = chosen(allGatewayLabels());
const middle = Math.ceil(daemon.length / 2);
/** Below those the system gives out. */
const PORT = 20_000 + (process.pid % 10_000);

async function play(what: string, labels: readonly string[], run: (place: Place) => Promise<readonly string[]>) {
  if (labels.length === 0) return;
  const place = createPlace();
  // What is kept of a mount that is gone, daemon and all, is shown here.
  place.env.WSFS_NO_RESTART = "1";
  const begun = performance.now();
  try {
    const missed = await run(place);
    if (missed.length > 0) throw new Error(`nobody came by ${missed.join(", ")}`);
    const seconds = ((performance.now() - begun) / 1000).toFixed(0);
    process.stdout.write(`${what}: died at ${labels.length} places, ${seconds} s\n`);
  } catch (error) {
    process.stdout.write(`${what}: ${error instanceof Error ? error.stack : error}\n`);
    process.exitCode = 1;
  } finally {
    await place.cleanUp();
  }
}

const daemonHalf = (labels: readonly string[]) => play("daemon", labels, (place) => killDaemonAt(place, labels));

await Promise.all([
  daemonHalf(daemon.slice(0, middle)),
  daemonHalf(daemon.slice(middle)),
  play("gateway", gateway, async (place) => {
    await killGatewayAt(place, gateway, PORT);
    return [];
  }),
]);
