/** `wsfs gateway backup` and `wsfs gateway restore`, for a local gateway that runs or does not. */
import { FolderOfOthers } from "../lib/claim-folder.ts";
import { systemClock } from "../lib/system-clock.ts";
import { EXIT, Failure } from "./failure.ts";
import { makeDataFolder } from "./gateway.ts";
import { dataFolder } from "./gateway-retention.ts";
import type { Values } from "./options.ts";
import { formatCount, formatSize } from "./wording.ts";
import { absolute } from "./working-folder.ts";

export async function gatewayBackup(values: Values<"gateway backup">): Promise<number> {
  const data = await dataFolder(values.data);
  const { DIR } = values.positionals;
  // A backup contains the key that signs tokens.
  process.umask(0o077);
  const { makeBackup } = await import("../gateway/backup/backup.ts");
  const options = { dataDir: data, folder: absolute(DIR), isThorough: values.verify, clock: systemClock };
  try {
    const report = await makeBackup(options);
    if (values.json) process.stdout.write(`${JSON.stringify(report)}\n`);
    else process.stdout.write(`${report.backup} is whole: ${describe(report, values.verify)}\n`);
    return EXIT.ok;
  } catch (cause) {
    if (cause instanceof FolderOfOthers) throw new Failure(`${DIR} is no folder of backups: ${cause.message}`);
    throw cause;
  }
}

export async function gatewayRestore(values: Values<"gateway restore">): Promise<number> {
  const { DIR } = values.positionals;
  process.umask(0o077);
  const { restoreBackup } = await import("../gateway/backup/restore.ts");
  const report = await restoreBackup({
    from: absolute(DIR),
    dataDir: absolute(values.data),
    claim: (folder) => void makeDataFolder(folder),
    isThorough: values.verify,
    clock: systemClock,
  });
  if (values.json) process.stdout.write(`${JSON.stringify(report)}\n`);
  else {
    const of = `${values.data} is the gateway of ${report.createdAt}`;
    process.stdout.write(`${of}: ${describe(report, values.verify)}\n`);
  }
  return EXIT.ok;
}

interface Copied {
  readonly contents: number;
  readonly bytes: number;
  readonly blobs: number;
  readonly copied: number;
}

function describe({ contents, bytes, blobs, copied }: Copied, isThorough: boolean): string {
  const how = `${formatCount(blobs, "blob")}, ${copied} of them copied`;
  return `${formatCount(contents, "content")} (${formatSize(bytes)}; ${how}), ${isThorough ? "bytes and sizes" : "sizes"} verified`;
}
