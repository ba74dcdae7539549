/**
 * The fuzz targets: those in C by libFuzzer, which looks for inputs that reach more of the code (clang; it says how many
 * bytes show a fault), those in TypeScript by fast-check. For the tests, which run each for some seconds, and for
 * `npm run soak -- fuzz`.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { run } from "../support/child.ts";
import { fuzzLink } from "./link.ts";
import { fuzzProfile } from "./profile.ts";

export interface Effort {
  readonly seconds: number;
  readonly seed: number;
}

export interface Target {
  readonly name: string;
  /** What it takes that may not be there; undefined: nothing. */
  readonly lacks: string | undefined;
  /** Resolves with what was done; rejects with the fault, and what shows it. `folder`: for its files, kept between runs. */
  run(folder: string, effort: Effort): Promise<string>;
}

const NATIVE = join(import.meta.dirname, "../../native");
const FLAGS = "-std=gnu11 -D_GNU_SOURCE -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all";
/** Node-API and libuv are not there: a target has those functions of them that it reaches. */
const WITHOUT_NODE = ["-no-pie", "-Wl,--unresolved-symbols=ignore-all"];
/** Bytes of an input. */
const LENGTH_MAX = 2048;
const PATIENCE_MS = 60_000;

function addonHeaders(): string {
  const config = readFileSync(join(NATIVE, "build/config.gypi"), "utf8").replace(/^#.*$/gm, "");
  const { variables } = JSON.parse(config) as { variables: { nodedir: string } };
  return join(variables.nodedir, "include/node");
}

function lacksFuzzer(): string | undefined {
  const args = ["-fsanitize=fuzzer", "-x", "c", "-", "-o", "/dev/null"];
  const input =
    "int LLVMFuzzerTestOneInput(const unsigned char *data, unsigned long size) { return data == 0 && size > 0; }";
  const { status } = spawnSync("clang", args, { input });
  return status === 0 ? undefined : "clang with libFuzzer (Debian: clang, libclang-rt-dev)";
}

/** A request of the kernel that is right in every way but for what the bytes say; 16 bytes are asked for. */
function request(opcode: 0 | 1 | 2, length: number): readonly number[] {
  const bytes: number[] = new Array(length).fill(0x61);
  bytes.fill(0, 0, 80);
  bytes[56] = 16;
  const everything = 0x7fe | (opcode << 14);
  return [5, everything & 0xff, everything >> 8, length, 0, ...bytes];
}

/** A line that begins with that word of control.c; it comes without a descriptor. */
const word = (index: number, text = "") => [0, index | (text === "" ? 0 : 0x10), text.length, ...Buffer.from(text), 0];

const RELOAD_ON_TRIAL =
  "AAEAAAACAAgAGCtzH3QgcB9wH3BwH3AfH3AfcB9wH3AfcB9wH3AfcB+oH3AfcB9wH3AfcB9wAAYABwkBBgkHCQEGAQcBNFYAAAAAAAACAAAACQAABgUHCQEAAgAAAAkAAAYBAAEAAAAGCQE=";

/** Where the search begins: at conversations that go well, and at one that once did not. */
const FIRST = {
  messages: [[0, 0, 1, 0, ...request(0, 80), ...request(1, 96), ...request(2, 90)]],
  control: [
    [...word(1), ...word(2), ...word(9), 6, 0, 7, 9, 1, ...word(2), ...word(9), 6, 1, 7, 9, 1, ...word(7), 7, 9, 2],
    [...word(1), ...word(2), ...word(8, `t s${"\x1fp".repeat(20)}`), 6, 0, 7, 9, 1, 6, 1, 7, 9, 1, 6, 1, 7, 9, 1],
    // One more reload is asked for while one is on trial, and then that one fails.
    [...Buffer.from(RELOAD_ON_TRIAL, "base64")],
  ],
};

/** `sources`: in test/fuzz; those of `native` beside them. */
function inC(name: keyof typeof FIRST, sources: readonly string[], native: readonly string[] = []): Target {
  return {
    name,
    lacks: lacksFuzzer(),
    async run(folder, { seconds, seed }) {
      const program = join(folder, name);
      const files = [
        ...sources.map((file) => join(import.meta.dirname, file)),
        ...native.map((file) => join(NATIVE, file)),
      ];
      const compile = [...FLAGS.split(" "), ...WITHOUT_NODE, "-I", addonHeaders(), "-o", program, ...files];
      const compiled = await run("clang", compile);
      if (compiled.code !== 0) throw new Error(`${name} cannot be compiled: ${compiled.stderr}`);
      // What has reached something new is where the next run goes on.
      const corpus = join(folder, `${name}-corpus`);
      mkdirSync(corpus, { recursive: true });
      for (const [i, bytes] of FIRST[name].entries()) writeFileSync(join(corpus, `first-${i}`), Buffer.from(bytes));
      const limits = [`-max_total_time=${seconds}`, `-seed=${seed}`, `-max_len=${LENGTH_MAX}`, "-timeout=20"];
      // Programs that a supervisor has been told of are few and never freed.
      const args = [...limits, "-detect_leaks=0", "-print_final_stats=1", `-artifact_prefix=${folder}/`, corpus];
      const env = { ...process.env, ASAN_OPTIONS: "detect_leaks=0" };
      const { code, stderr } = await run(program, args, { env, timeoutMs: seconds * 1000 + PATIENCE_MS });
      if (code !== 0) throw new Error(`${name}, exit code ${code}: ${withoutProgress(stderr)}`);
      return `${/executed_units: (\d+)/.exec(stderr)?.[1] ?? "no"} inputs`;
    },
  };
}

/** Its lines of progress begin with a number. */
const withoutProgress = (text: string) => text.replace(/^#\d+\t.*\n/gm, "").slice(-6000);

export const TARGETS: readonly Target[] = [
  inC("messages", ["messages.c", "node-api.c"], ["addon/fast-path.c", "addon/refusals.c", "addon/splicer.c"]),
  inC("control", ["control.c"]),
  { name: "link", lacks: undefined, run: async (_folder, effort) => fuzzLink(effort) },
  { name: "profile", lacks: undefined, run: (_folder, effort) => fuzzProfile(effort) },
];
