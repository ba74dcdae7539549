/**
 * The daemon dies (kill -9). The crash matrix kills one mount at a place of a short script and starts it again: at
 * every kind of place and, drawn by a fixed seed, at many others. Every place of all scripts, and pairs of them, are
 * `npm run soak -- steps`. The connection dies as well, at each change asked of the gateway, with and without a crash.
 * Afterwards the interrupted call must have happened once or not at all.
 */
import { describe, expect, test } from "vitest";
import { engineLabels } from "../support/step-labels.ts";
import { seededRandom } from "../support/virtual-clock.ts";
import { FAULTS_OF_CHANGES, playFault, playKills } from "./support/crash-matrix.ts";
import { playScript, type Script } from "./support/crash-run.ts";
import { SCRIPTS } from "./support/crash-scripts.ts";
import { playHistory } from "./support/history.ts";

describe("the crash matrix", () => {
  const SEED = 1;

  /** Passings of each label besides the first, wherever they may be. */
  const LATER = 1;

  /** Of each script: a second death while it comes up again. */
  const TWICE = 3;

  const DRAWN_FAULTS = 2;

  test("the daemon dies at any place: nothing is lost or done twice", { timeout: 600_000 }, async () => {
    const random = seededRandom(SEED);
    const draw = (count: number) => Math.floor(random() * count);
    const passings = new Map<string, { script: Script; labels: readonly string[]; place: number }[]>();
    const deaths: { script: Script; labels: readonly string[]; kills: number[] }[] = [];
    for (const script of SCRIPTS) {
      const { labels } = await playScript(script);
      for (const [index, label] of labels.entries()) {
        const known = passings.get(label) ?? [];
        passings.set(label, [...known, { script, labels, place: index + 1 }]);
      }
      for (let count = 0; count < TWICE; count += 1) {
        const place = 1 + draw(labels.length);
        deaths.push({ script, labels, kills: [place, place + 1 + draw(12)] });
      }
    }
    for (const all of passings.values()) {
      const chosen = new Set([all[0], ...Array.from({ length: LATER }, () => all[draw(all.length)])]);
      for (const one of chosen) if (one !== undefined) deaths.push({ ...one, kills: [one.place] });
    }
    const failed: string[] = [];
    const passed = new Set(passings.keys());
    for (const { script, labels, kills } of deaths) {
      const problem = await playKills(script, labels, kills, passed);
      if (problem !== undefined) failed.push(problem);
    }
    console.log(`crash matrix: ${deaths.length} runs, ${passings.size} kinds of places`);
    expect(failed).toEqual([]);
    // Every fault point of the engine is passed by some script, or on the way up again.
    expect([...engineLabels()].filter((label) => !passed.has(label))).toEqual([]);
  });

  test("the connection dies before, during or after each change", { timeout: 600_000 }, async () => {
    const random = seededRandom(SEED);
    const failed: string[] = [];
    for (const script of SCRIPTS) {
      const { requests } = await playScript(script);
      for (let drawn = 0; drawn < DRAWN_FAULTS; drawn += 1) {
        // A script that has a fault of its own repeats a request.
        const count = requests.length - (script.fault === undefined ? 0 : 1);
        const request = 1 + Math.floor(random() * count);
        const what = FAULTS_OF_CHANGES[Math.floor(random() * FAULTS_OF_CHANGES.length)] ?? "lost-after";
        const deaths = [Math.floor(random() * 6)];
        for (const problem of await playFault(script, { request, what, deaths })) {
          if (problem !== undefined) failed.push(problem);
        }
      }
    }
    expect(failed).toEqual([]);
  });
});

/** Whether the write was done cannot be told by names and sizes: while the network hides contents, either is right. */
describe("a program overwrites a file of the same size when the mount dies", () => {
  /** Long after the write is answered. */
  const TICKS = 90;

  const WEATHERS = [
    { what: "offline", isOffline: true, faultShare: 0 },
    { what: "failing", isOffline: false, faultShare: 0.5 },
  ];

  test.each(WEATHERS)("it dies at any moment of it, and once more, while $what", async ({ isOffline, faultShare }) => {
    for (let ticks = 0; ticks < TICKS; ticks += 1) {
      const death = {
        do: "crash",
        mount: 0,
        program: { do: "overwrite", path: "a", at: 0, size: 1 },
        ticks,
        ms: 0,
      } as const;
      const history = playHistory(
        [
          { do: "run", mount: 0, program: { do: "save", path: "a", size: 1 } },
          { do: "weather", mount: 0, latencyMs: 0, isOffline, faultShare },
          death,
          death,
        ],
        { seed: 1, mounts: 1 },
      );
      await expect(history, `${ticks} ticks`).resolves.toBeDefined();
    }
  });
});
