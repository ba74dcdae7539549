/** Programs of executions that a test begins and ends, and their logs in memory. */
import type { LogLine } from "../../src/contract/engines.ts";
import type { EngineHost } from "../../src/gateway/engines/index.ts";
import type { EngineRun, RunEnd } from "../../src/gateway/engines/processes.ts";
import { createSignal } from "../../src/gateway/signal.ts";

export interface FakeEngines extends EngineHost {
  /** All that was started, in that order. */
  readonly started: EngineRun[];
  /** What endLeft was called with. */
  readonly left: (readonly string[])[];
  /** Ids of what runs. */
  running(): string[];
  /** The program ends, by itself. */
  end(id: string, end?: Partial<RunEnd>): void;
  /** As when the gateway dies: what it waits for never comes. */
  die(): void;
}

export function createFakeEngines(maxExecutions = 4): FakeEngines {
  const started: EngineRun[] = [];
  const left: (readonly string[])[] = [];
  let open = new Map<string, (end: RunEnd) => void>();
  const logs = new Map<string, LogLine[]>();
  const news = createSignal();
  const end = (id: string, { exitCode = 0, timedOut = false, detail = null }: Partial<RunEnd> = {}) => {
    const resolve = open.get(id);
    if (resolve === undefined) throw new Error(`${id} does not run`);
    open.delete(id);
    resolve({ exitCode, timedOut, detail });
  };
  return {
    maxExecutions,
    started,
    left,
    running: () => [...open.keys()],
    end,
    die() {
      open = new Map();
    },
    processes: {
      start(run) {
        started.push(run);
        const ended = new Promise<RunEnd>((resolve) => open.set(run.id, resolve));
        return {
          ended,
          end() {
            if (open.has(run.id)) end(run.id, { exitCode: null, detail: "It was ended by SIGTERM." });
            return ended;
          },
        };
      },
      async endLeft(executions) {
        left.push(executions);
        return [];
      },
    },
    logs: {
      news,
      open(execution) {
        const lines: LogLine[] = [];
        logs.set(execution, lines);
        return {
          write(stream, bytes) {
            const text = Buffer.from(bytes).toString().replace(/\n$/, "");
            lines.push({ number: lines.length + 1, time: new Date(0).toISOString(), stream, text });
            news.fire([execution]);
          },
          close: async () => news.fire([execution]),
        };
      },
      lines: async (execution, after, limit) => (logs.get(execution) ?? []).slice(after, after + limit),
      count: async (execution) => logs.get(execution)?.length ?? 0,
      bytes: (execution) => (logs.get(execution) ?? []).reduce((sum, { text }) => sum + text.length + 1, 0),
      async remove(execution) {
        logs.delete(execution);
      },
    },
  };
}
