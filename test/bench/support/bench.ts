/** A benchmark from its command line to its report; whatever happens, nothing of it is left behind. */
import { mkdirSync } from "node:fs";
import { resolve } from "node:path";
import { becomeOrdinaryUser, type OrdinaryUser, whyNoOrdinaryUser } from "../../support/ordinary-user.ts";
import { createPlace, type Place } from "../../support/wsfs.ts";
import { type Report, toJson, toTable } from "./figures.ts";
import { type BenchOptions, readOptions, tellFailure, UsageError } from "./options.ts";

/** This process, and every node started by it or in the place from now on, write a profile when they end. */
async function profileInto(place: Place, folder: string): Promise<void> {
  mkdirSync(folder, { recursive: true });
  place.env.WSFS_PROFILE_DIR = folder;
  const recorder = new URL("profile.mjs", import.meta.url);
  place.env.NODE_OPTIONS = `--import ${recorder}`;
  process.env.WSFS_PROFILE_DIR = folder;
  process.env.NODE_OPTIONS = place.env.NODE_OPTIONS;
  await import(recorder.href);
}

/** A report of a form of its own. */
export interface Printed {
  readonly json: string;
  readonly text: string;
}

/** Sets the process's exit code: 2 when the command line was not understood, 1 when the benchmark failed. */
export async function runBench(
  workloads: readonly string[],
  bench: (place: Place, options: BenchOptions, other: Place) => Promise<Report | Printed>,
): Promise<void> {
  let place: Place | undefined;
  let other: Place | undefined;
  let user: OrdinaryUser | undefined;
  const cleanUp = async () => {
    await place?.cleanUp();
    await other?.cleanUp();
    await user?.end();
  };
  const stop = () => void cleanUp().finally(() => process.exit(1));
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, stop);
  try {
    const options = readOptions(process.argv.slice(2), workloads);
    if (options === undefined) return;
    if (options.asUser) user = await becomeUser();
    place = createPlace(undefined, user);
    if (options.profile !== undefined) await profileInto(place, resolve(options.profile));
    if (options.beside !== undefined) other = createPlace(resolve(options.beside), user);
    const report = await bench(place, options, other ?? place);
    const { json, text } = "text" in report ? report : { json: toJson(report), text: toTable(report, options) };
    process.stdout.write(options.json ? json : text);
  } catch (error) {
    tellFailure(error);
  } finally {
    await cleanUp();
  }
}

function becomeUser(): Promise<OrdinaryUser> {
  const whyNot = whyNoOrdinaryUser();
  if (whyNot !== undefined) throw new UsageError(`--as-user: ${whyNot}`);
  return becomeOrdinaryUser("");
}
