/** `wsfs drain`, and the part of `wsfs umount --drain` that is the same. */
import type { DrainProgress, DrainResult } from "../daemon/control-messages.ts";
import { EXIT } from "./failure.ts";
import { requireServed } from "./find-mount.ts";
import type { Values } from "./options.ts";
import { describeLeft, formatSize } from "./wording.ts";

export async function drain(values: Values<"drain">): Promise<number> {
  const { served } = requireServed(values.dir);
  const result = await drainWithProgress(served.socket, {
    settle: !values["no-settle"],
    seconds: values.timeout,
  });
  return reportDrain(result);
}

/** Says what is left, one line each. */
export function reportDrain(result: DrainResult): number {
  if (result.drained) return EXIT.ok;
  const [first = "not everything could be uploaded in time", ...rest] = result.left;
  process.stderr.write(`wsfs: not drained: ${first}\n`);
  for (const line of rest) process.stderr.write(`wsfs: not drained: ${line}\n`);
  return EXIT.failure;
}

export async function drainWithProgress(
  socket: string,
  options: { settle: boolean; seconds: number | undefined },
): Promise<DrainResult> {
  const { postDrain } = await import("../daemon/control-client.ts");
  const show = process.stderr.isTTY ? await progressBar() : progressLines();
  try {
    const timeout = options.seconds === undefined ? {} : { timeoutMs: options.seconds * 1000 };
    return await postDrain(socket, { settle: options.settle, ...timeout }, (progress) => show.update(progress));
  } finally {
    show.end();
  }
}

interface Progress {
  update(progress: DrainProgress): void;
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
    update(progress) {
      // In bytes while there are any: of the rest one knows only how many.
      const total = Math.max(progress.bytesSent + progress.bytesPending, 1);
      const done = progress.dirty === 0 ? total : Math.min(progress.bytesSent, total - 1);
      const what = { what: describeProgress(progress) };
      if (!started) bar.start(total, done, what);
      started = true;
      bar.setTotal(total);
      bar.update(done, what);
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
    update(progress) {
      const now = performance.now();
      if (now - written < LINE_INTERVAL_MS) return;
      written = now;
      process.stderr.write(`wsfs: ${describeProgress(progress)}\n`);
    },
    end() {},
  };
}

function describeProgress(progress: DrainProgress): string {
  const sent = progress.bytesSent === 0 ? "" : `, ${formatSize(progress.bytesSent)} sent`;
  if (progress.dirty > 0) return `${describeLeft(progress)} to upload${sent}`;
  return progress.settled ? `all uploaded${sent}` : `all uploaded${sent}; waiting for the gateway's index`;
}
