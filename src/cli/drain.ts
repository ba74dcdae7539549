/** `wsfs drain`, and its part of `wsfs umount --drain`. */
import type { DrainProgress, DrainResult } from "../daemon/control-messages.ts";
import { EXIT } from "./failure.ts";
import { requireServed, type Served } from "./find-mount.ts";
import type { Values } from "./options.ts";
import { createPace, type Pace } from "./pace.ts";
import { describeUnsent, formatDuration, formatSize, printable } from "./wording.ts";

export async function drain(values: Values<"drain">): Promise<number> {
  const { dir, json } = values;
  const { served } = await requireServed(dir);
  const options = { settle: !values["no-settle"], seconds: values.timeout };
  if (!json) return reportDrain(await drainWithProgress(dir, served, options));
  const result = await runDrain(dir, served, options, jsonLines());
  process.stdout.write(`${JSON.stringify({ result })}\n`);
  return result.drained ? EXIT.ok : EXIT.failure;
}

/** Prints the remaining changes, one line each. Returns the exit code. */
export function reportDrain(result: DrainResult): number {
  if (result.drained) return EXIT.ok;
  const [first = "not everything could be uploaded in time", ...rest] = result.left;
  for (const line of [first, ...rest]) process.stderr.write(`wsfs: not drained: ${printable(line)}\n`);
  return EXIT.failure;
}

interface DrainOptions {
  readonly settle: boolean;
  readonly seconds: number | undefined;
}

export async function drainWithProgress(dir: string, served: Served, options: DrainOptions): Promise<DrainResult> {
  return runDrain(dir, served, options, process.stderr.isTTY ? await progressBar() : progressLines());
}

interface Progress {
  update(progress: DrainProgress, text: string): void;
  end(): void;
}

async function runDrain(dir: string, served: Served, options: DrainOptions, show: Progress): Promise<DrainResult> {
  const [{ ask }, { postDrain }] = await Promise.all([import("./ask.ts"), import("../daemon/control-client.ts")]);
  const end = options.seconds === undefined ? undefined : performance.now() + options.seconds * 1000;
  const pace = createPace();
  let last: DrainProgress | undefined;
  const stopListening = onSignal(() => {
    show.end();
    const left = last === undefined ? "" : `; left to upload: ${describeUnsent(last)}`;
    process.stderr.write(`wsfs: no longer waiting${left}; ${dir} stays mounted and goes on\n`);
  });
  try {
    // A successor of the daemon can go on with the drain, so it may be asked again.
    return await ask(served, (socket) => {
      const timeout = end === undefined ? {} : { timeoutMs: Math.max(0, end - performance.now()) };
      return postDrain(socket, { settle: options.settle, ...timeout }, (progress) => {
        last = progress;
        pace.note(performance.now(), progress);
        show.update(progress, describeProgress(progress, pace));
      });
    });
  } finally {
    stopListening();
    show.end();
  }
}

/** Prints the last words; then the signal ends this process as if it had not been caught. */
function onSignal(lastWords: () => void): () => void {
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  const stop = () => {
    for (const signal of signals) process.off(signal, end);
  };
  const end = (signal: NodeJS.Signals) => {
    lastWords();
    stop();
    process.kill(process.pid, signal);
  };
  for (const signal of signals) process.on(signal, end);
  return stop;
}

function jsonLines(): Progress {
  let before = "";
  return {
    update(progress) {
      const line = `${JSON.stringify({ progress })}\n`;
      if (line !== before) process.stdout.write(line);
      before = line;
    },
    end() {},
  };
}

async function progressBar(): Promise<Progress> {
  const { default: cliProgress } = await import("cli-progress");
  const bar = new cliProgress.SingleBar({
    stream: process.stderr,
    // A narrow terminal cuts off the end of the line.
    format: "[{bar}] {percentage}% {what}",
    barsize: 20,
    clearOnComplete: true,
    hideCursor: true,
  });
  let started = false;
  let most = 0;
  return {
    update(progress, what) {
      most = Math.max(most, progress.dirty);
      const percent = percentOf(progress, most);
      if (!started) bar.start(100, percent, { what });
      started = true;
      bar.update(percent, { what });
    },
    end() {
      if (started) bar.stop();
      started = false;
    },
  };
}

/**
 * By bytes while there are any, otherwise by the largest number of changes seen. It is 100 only when nothing is left.
 */
export function percentOf({ dirty, bytesPending, bytesSent }: DrainProgress, most: number): number {
  if (dirty === 0) return 100;
  const total = bytesSent + bytesPending;
  return Math.min(99, Math.floor((total === 0 ? 1 - dirty / Math.max(most, dirty) : bytesSent / total) * 100));
}

const WAITING_FOR_INDEX = "waiting for the gateway's index";
const LINE_INTERVAL_MS = 3000;

/** Most drains end at once, so the first line comes only after a while. */
function progressLines(): Progress {
  let written = performance.now();
  return {
    update(_, what) {
      const now = performance.now();
      if (now - written < LINE_INTERVAL_MS) return;
      written = now;
      process.stderr.write(`wsfs: ${what}\n`);
    },
    end() {},
  };
}

/**
 * Describes files, bytes, speed and remaining time, or the changes that are stuck, perhaps for ever. The text is short,
 * because terminals are narrow.
 */
export function describeProgress(progress: DrainProgress, pace: Pick<Pace, "bytesPerSecond" | "leftMs">): string {
  const { dirty, settled, bytesSent, stuck } = progress;
  const { bytesPerSecond, leftMs } = pace;
  const left = dirty > 0 ? `${describeUnsent(progress)} to upload` : "all uploaded";
  const sent = bytesSent === 0 ? [] : [`${formatSize(bytesSent)} sent`];
  if (dirty === 0 && stuck === undefined) return [settled ? left : `${left}; ${WAITING_FOR_INDEX}`, ...sent].join(", ");
  const rate = bytesPerSecond >= 1 ? [`${formatSize(bytesPerSecond)}/s`] : [];
  if (stuck !== undefined) return `${[left, ...rate].join(", ")}; ${printable(stuck)}`;
  const time = leftMs === undefined ? [] : [`about ${formatDuration(Math.max(leftMs, 1000))} left`];
  return [left, ...rate, ...time, ...sent].join(", ");
}
