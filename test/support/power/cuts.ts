/** Many cuts of one recording, by seed: where, and what becomes of what was not synced. */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { seededRandom } from "../virtual-clock.ts";
import { noPromises, problemsAfter, promise, wholeContents } from "./after.ts";
import { type CutDisk, createPowerDisk, type Fate } from "./disk.ts";
import type { Recording } from "./record.ts";

const DATA = ["lost", "lost", "kept", "torn", "torn", "mixed"] as const;
const NAMES = ["lost", "kept", "journal", "any"] as const;

const MARKED = z.object({ kind: z.string() });

export interface Cut {
  /** How many changes were recorded before it. */
  readonly at: number;
  readonly seed: number;
}

/**
 * A third of them right after a program was told something: later, other syncs have made up for one
 * that was forgotten. A third right after the gateway changed, which rows on the disk may not know.
 * The rest anywhere. All evenly over the record.
 */
export function chooseCuts(recording: Recording, count: number, seed: number): Cut[] {
  const chance = seededRandom(seed);
  const told: number[] = [];
  const changed: number[] = [];
  for (const [index, { change }] of recording.recorded.entries()) {
    if (change.kind !== "mark") continue;
    const { kind } = MARKED.parse(change.value);
    if (kind === "gateway") changed.push(index + 1);
    else if (kind !== "begin" && kind !== "state") told.push(index + 1);
  }
  const anywhere = Array.from(recording.recorded, (_, index) => index + 1);
  const kinds = [told, changed, anywhere].filter((places) => places.length > 0);
  const cuts = Array.from({ length: count }, (_, index): Cut => {
    const places = kinds[index % kinds.length] as readonly number[];
    const at = places[Math.floor(((index + chance()) / count) * places.length)] as number;
    return { at, seed: Math.floor(chance() * 2 ** 32) };
  });
  return cuts.sort((a, b) => a.at - b.at);
}

/** `cuts` in ascending order. Calls back with what is wrong after each. */
export async function cutAt(
  recording: Recording,
  cuts: readonly Cut[],
  after: (cut: Cut, fate: Fate, problems: string[]) => void,
): Promise<void> {
  const disk = createPowerDisk();
  const promises = noPromises();
  const whole = wholeContents(recording);
  let at = 0;
  for (const cut of cuts) {
    let time = 0n;
    for (; at < cut.at; at += 1) {
      const each = recording.recorded[at];
      if (each === undefined) break;
      time = each.time;
      if (each.change.kind === "mark") promise(promises, each.change.value);
      else disk.apply(each);
    }
    time = recording.recorded[cut.at - 1]?.time ?? time;
    const chance = seededRandom(cut.seed);
    const pick = <T>(from: readonly T[]) => from[Math.floor(chance() * from.length)] as T;
    const fate: Fate = { data: pick(DATA), names: pick(NAMES) };
    const left = disk.cut(chance, fate);
    const problems = await problemsAfter(recording, left, promises, whole, time).catch((error: unknown) => [
      error instanceof Error ? (error.stack ?? error.message) : String(error),
    ]);
    after(cut, fate, problems);
  }
}

/** How what the record leads to differs from what is really there: nothing, or the record is not complete. */
export function unrecorded(recording: Recording): string[] {
  const disk = createPowerDisk();
  for (const each of recording.recorded) disk.apply(each);
  return compare(
    recording.folder,
    disk.cut(() => 0),
  );
}

function compare(folder: string, expected: CutDisk): string[] {
  const wrong: string[] = [];
  const seen = new Set<string>();
  for (const entry of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    if (entry.endsWith("-shm")) continue;
    seen.add(entry);
    const file = expected.get(entry);
    const path = join(folder, entry);
    const isFolder = statSync(path).isDirectory();
    if (file === undefined || (file === null) !== isFolder) wrong.push(`${entry} is not in the record`);
    else if (file !== null && Buffer.compare(readFileSync(path), file.read()) !== 0) wrong.push(`${entry} differs`);
  }
  for (const path of expected.keys()) if (!seen.has(path)) wrong.push(`${path} is in the record only`);
  return wrong;
}
