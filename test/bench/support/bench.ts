/** A benchmark from its command line to its report; whatever happens, nothing of it is left behind. */
import { mkdirSync } from "node:fs";
import { resolve } from "node:path";
import { becomeOrdinaryUser, type OrdinaryUser, whyNoOrdinaryUser } from "../../support/ordinary-user.ts";
import { createPlace, type Place } from "../../support/wsfs.ts";
import { type Report, toJson, toTable } from "./figures.ts";
import { type BenchOptions, HELP, readOptions, UsageError } from "./options.ts";

/** Every node started in the place from now on writes a profile when it ends. */
function profileInto(place: Place, folder: string): void {
  mkdirSync(folder, { recursive: true });
  place.env.WSFS_PROFILE_DIR = folder;
  place.env.NODE_OPTIONS = `--import ${new URL("profile.mjs", import.meta.url)}`;
}

/** Sets the process's exit code: 2 when the command line was not understood, 1 when the benchmark failed. */
export async function runBench(
  workloads: readonly string[],
  bench: (place: Place, options: BenchOptions, other: Place) => Promise<Report>,
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
    if (options.asUser) user = await becomeUser();
    place = createPlace(undefined, user);
    if (options.profile !== undefined) profileInto(place, resolve(options.profile));
    if (options.beside !== undefined) other = createPlace(resolve(options.beside), user);
    const report = await bench(place, options, other ?? place);
    process.stdout.write(options.json ? toJson(report) : toTable(report, options));
  } catch (error) {
    process.exitCode = error instanceof UsageError ? 2 : 1;
    const text = error instanceof UsageError ? `${error.message}\n${HELP}` : `${(error as Error).stack}\n`;
    process.stderr.write(`bench: ${text}`);
  } finally {
    await cleanUp();
  }
}

function becomeUser(): Promise<OrdinaryUser> {
  const whyNot = whyNoOrdinaryUser();
  if (whyNot !== undefined) throw new UsageError(`--as-user: ${whyNot}`);
  return becomeOrdinaryUser("");
}
