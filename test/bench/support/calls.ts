/** calls.c, compiled, as a function: what it times happens in its process, never in this one. */
import { fileURLToPath } from "node:url";
import { run } from "../../support/child.ts";
import { check, type Place } from "../../support/wsfs.ts";

export interface Timed {
  readonly seconds: number;
  readonly count: number;
  /** What a timed program printed. */
  readonly output: string;
}

export type Calls = (...args: readonly (string | number)[]) => Promise<Timed>;

const SOURCE = fileURLToPath(new URL("calls.c", import.meta.url));
const LIMIT_MS = 600_000;

export async function compileCalls(place: Place): Promise<Calls> {
  const program = place.path("calls");
  check(await run("cc", ["-O2", "-Wall", "-Wextra", "-o", program, SOURCE]));
  return async (...args) => {
    const { stdout } = check(await place.run(program, args.map(String), { timeoutMs: LIMIT_MS }));
    const lines = stdout.trimEnd().split("\n");
    const { seconds, count } = readTimed(lines.pop() ?? "");
    return { seconds, count, output: lines.join("\n") };
  };
}

function readTimed(line: string): { seconds: number; count: number } {
  const value: unknown = JSON.parse(line);
  if (typeof value === "object" && value !== null && "seconds" in value && "count" in value) {
    const { seconds, count } = value;
    if (typeof seconds === "number" && typeof count === "number") return { seconds, count };
  }
  throw new Error(`expected {"seconds", "count"} from calls, got ${line}`);
}
