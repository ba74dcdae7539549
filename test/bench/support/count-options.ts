/** The command line of benchmarks that are about very many nodes, and about nothing else. */
import { basename } from "node:path";
import { parseArgs } from "node:util";
import { asUsage, UsageError } from "./options.ts";

/** `where`: the nodes are. Undefined: help was asked for and is printed. Throws a UsageError when it is not understood. */
export function readCountOptions(where: string): { readonly count: number; readonly json: boolean } | undefined {
  const options = { nodes: { type: "string" }, json: { type: "boolean" }, help: { type: "boolean" } } as const;
  const { nodes = "1000000", json = false, help } = asUsage(() => parseArgs({ options }).values);
  if (help === true) {
    process.stdout.write(
      `bench: ${basename(process.argv[1] ?? "", ".ts")}\n` +
        `flags: --nodes N           ${where}, a million by default\n` +
        "       --json              one JSON document instead of the table\n",
    );
    return undefined;
  }
  if (!/^[1-9]\d{0,8}$/.test(nodes)) throw new UsageError(`--nodes: expected a whole number, got "${nodes}"`);
  return { count: Number(nodes), json };
}
