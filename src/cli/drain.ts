/** `wsfs drain`, and the part of `wsfs umount --drain` that is the same. */
import type { DrainProgress, DrainResult } from "../daemon/control-messages.ts";
import { EXIT } from "./failure.ts";
import { requireServed } from "./find-mount.ts";
import type { Values } from "./options.ts";
import { createPace, type Pace } from "./pace.ts";
import { describeLeft, formatDuration, formatSize } from "./wording.ts";

export async function drain(values: Values<"drain">): Promise<number> {
  const { served } = requireServed(values.dir);
  const options = { settle: !values["no-settle"], seconds: values.timeout };
  if (!values.json) return reportDrain(await drainWithProgress(served.socket, options));
  const print = (line: object) => void process.stdout.write(`${JSON.stringify(line)}\n`);
  const result = await runDrain(served.socket, options, (progress) => print({ progress }));
  print({ result });
  return result.drained ? EXIT.ok : EXIT.failure;
}

/** Says what is left, one line each. */
export function reportDrain(result: DrainResult): number {
  if (result.drained) return EXIT.ok;
  const [first = "not everything could be uploaded in time", ...rest] = result.left;
  process.stderr.write(`wsfs: not drained: ${first}\n`);
  for (const line of rest) process.stderr.write(`wsfs: not drained: ${line}\n`);
  return EXIT.failure;
}

interface DrainOptions {
  readonly settle: boolean;
  readonly seconds: number | undefined;
}

async function runDrain(
  socket: string,
  options: DrainOptions,
  onProgress: (progress: DrainProgress) => void,
): Promise<DrainResult> {
  const { postDrain } = await import("../daemon/control-client.ts");
  const timeout = options.seconds === undefined ? {} : { timeoutMs: options.seconds * 1000 };
  return postDrain(socket, { settle: options.settle, ...timeout }, onProgress);
}

export async function drainWithProgress(socket: string, options: DrainOptions): Promise<DrainResult> {
  const show = process.stderr.isTTY ? await progressBar() : progressLines();
  const pace = createPace();
  try {
    return await runDrain(socket, options, (progress) => {
      pace.note(performance.now(), progress);
      show.update(progress, describeProgress(progress, pace));
    });
  } finally {
    show.end();
  }
}

interface Progress {
  update(progress: DrainProgress, text: string): void;
  end(): void;
}

async function progressBar(): Promise<Progress> {
  const { default: cliProgress } = await import("cli-progress");
  const bar = new cliProgress.SingleBar({
    stream: process.stderr,
    format: "uploading [{bar}] {percentage}% | {what}",
    clearOnComplete: true,
    hideCursor: true,
  });
  let started = false;
  return {
    update(progress, what) {
      // In bytes while there are any: of the rest one knows only how many.
      const total = Math.max(progress.bytesSent + progress.bytesPending, 1);
      const done = progress.dirty === 0 ? total : Math.min(progress.bytesSent, total - 1);
      if (!started) bar.start(total, done, { what });
      started = true;
      bar.setTotal(total);
      bar.update(done, { what });
    },
    end() {
      if (started) bar.stop();
    },
  };
}

const LINE_INTERVAL_MS = 3000;

/** The first line only after a while: most drains are over at once. */
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

/** Files, bytes, how fast, how long yet, and what is stuck. */
export function describeProgress(progress: DrainProgress, pace: Pick<Pace, "bytesPerSecond" | "leftMs">): string {
  const sent = progress.bytesSent === 0 ? [] : [`${formatSize(progress.bytesSent)} sent`];
  if (progress.dirty === 0) {
    const all = progress.settled ? "all uploaded" : "all uploaded; waiting for the gateway's index";
    return [all, ...sent].join(", ");
  }
  const { bytesPerSecond, leftMs } = pace;
  const parts = [
    `${describeLeft(progress)} to upload`,
    ...sent,
    ...(bytesPerSecond >= 1 ? [`${formatSize(bytesPerSecond)}/s`] : []),
    ...(leftMs === undefined ? [] : [`about ${formatDuration(leftMs)} left`]),
    ...(progress.stuck === undefined ? [] : [progress.stuck]),
  ];
  return parts.join(", ");
}
