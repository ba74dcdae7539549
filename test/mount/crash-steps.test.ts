/**
 * The daemon and the gateway die by kill -9 at a few of their fault points, one of each kind; all
 * of them are `npm run soak -- crash-steps`, and each with many passings test/sim/crash.test.ts.
 */
import { afterEach, beforeEach, expect, test } from "vitest";
import { createPlace, type Place } from "../support/wsfs.ts";
import { killDaemonAt, killGatewayAt } from "./support/crash-steps.ts";

const DAEMON = [
  "write: bytes in the file",
  "recover: a file a writer had",
  "rename: done",
  "request: answered",
  "daemon: has the device",
  "stop: quiet",
];
const GATEWAY = ["gateway: committed", "gateway: blob in place", "gateway: blob collected"];
/** Below those the system gives out. */
const PORT = 20_000 + (process.pid % 10_000);

let place: Place;
beforeEach(() => {
  place = createPlace();
  // What is kept of a mount that is gone, daemon and all, is shown here.
  place.env.WSFS_NO_RESTART = "1";
});
afterEach(() => place.cleanUp());

test("the daemon", { timeout: 900_000 }, async () => {
  expect(await killDaemonAt(place, DAEMON)).toEqual([]);
});

test("the gateway", { timeout: 900_000 }, async () => {
  await killGatewayAt(place, GATEWAY, PORT);
});
