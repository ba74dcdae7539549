/**
 * Random histories under lag, faults and crashes. A single mount shows at every moment what a plain folder would. Two
 * and three mounts and another client that change the same few names end in agreement, and no finished content is lost;
 * so it is at gateways that lack a feature, or are plain. What cannot hold there is in docs/gateway/profiles.md.
 */
import { describe, expect, test } from "vitest";
import { PLAIN, PLAINEST } from "../support/features.ts";
import { ignoring } from "./support/break-rows.ts";
import { playHistory } from "./support/history.ts";
import type { Sabotage } from "./support/mount.ts";
import type { Step } from "./support/steps.ts";
import { LESSER, ONE, playKind, THREE, TWO } from "./support/worlds.ts";

const TIMEOUT = { timeout: 600_000 };

test(ONE.name, TIMEOUT, async () => {
  expect(await playKind(ONE, 160)).toBeUndefined();
});

test(TWO.name, TIMEOUT, async () => {
  expect(await playKind(TWO, 100)).toBeUndefined();
});

test(THREE.name, TIMEOUT, async () => {
  expect(await playKind(THREE, 80)).toBeUndefined();
});

describe("lesser gateways", () => {
  for (const kind of LESSER) {
    test(kind.name, TIMEOUT, async () => {
      expect(await playKind(kind, 30)).toBeUndefined();
    });
  }

  /** Removed, and for eight seconds still in every list. */
  const LATE_LISTING: readonly Step[] = [
    { do: "lag", path: 8_000, journal: 0, id: 0 },
    { do: "run", mount: 0, program: { do: "save", path: "a", size: 20 } },
    { do: "run", mount: 0, program: { do: "save", path: "b", size: 20 } },
    { do: "wait", ms: 12_000 },
    { do: "run", mount: 0, program: { do: "unlink", path: "a" } },
    { do: "wait", ms: 12_000 },
  ];

  test("a removed name does not come back with a late list; without the record of its echo it would", async () => {
    const options = { mounts: 1, seed: 1, features: PLAINEST } as const;
    await playHistory(LATE_LISTING, options);
    const sabotage = ignoring("UPDATE OF heard ON vacated");
    await expect(playHistory(LATE_LISTING, { ...options, sabotage })).rejects.toThrow(/the mount has it|is back after/);
  });

  /** Beta's lists are not answered from before alpha's last save until shortly before the end. */
  const UNANSWERED_LIST: readonly Step[] = [
    { do: "run", mount: 0, program: { do: "save", path: "a", size: 20 } },
    { do: "wait", ms: 4_000 },
    { do: "run", mount: 1, program: { do: "list", path: "" } },
    { do: "weather", mount: 1, isOffline: false, latencyMs: 0, faultShare: 1 },
    { do: "wait", ms: 2_000 },
    { do: "run", mount: 0, program: { do: "save", path: "a", size: 30 } },
  ];

  test("the end waits for a mount whose list is not answered, and not for one that does not list again", async () => {
    const options = { mounts: 2, seed: 1, features: PLAIN, faults: ["silent-before"] } as const;
    await playHistory(UNANSWERED_LIST, options);
    const sabotage: Sabotage = {
      engine(_files, _rows, { client }) {
        const { listFolder } = client;
        const known = new Map<string, ReturnType<typeof listFolder>>();
        Object.assign(client, {
          listFolder(...[folder, options]: Parameters<typeof listFolder>) {
            if (options?.pageSize === 1) return listFolder(folder, options);
            const list = known.get(folder) ?? listFolder(folder, options);
            list.then(
              () => known.set(folder, list),
              () => {},
            );
            return list;
          },
        });
        return {};
      },
    };
    await expect(playHistory(UNANSWERED_LIST, { ...options, sabotage })).rejects.toThrow(/does not list folder/);
  });
});
