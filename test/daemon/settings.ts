/** Settings of a daemon for tests that look at a few of them. */
import type { DaemonSettings } from "../../src/daemon/settings.ts";

export const SETTINGS: DaemonSettings = {
  mountId: "m",
  mountpoint: "/m",
  baseUrl: "http://h",
  workspace: "w",
  stateHome: "/s",
  runtimeFolder: "/r",
  cacheSize: 1,
  patienceMs: 0,
  shortenWaits: 1,
  readOnly: false,
  crashes: 5,
  passthrough: true,
  durability: "local",
  logLevel: "info",
  foreground: false,
};
