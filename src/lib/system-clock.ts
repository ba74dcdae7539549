/** The machine's own time and randomness. Programs on a virtual clock use another `Clock`. */
import { randomUUID } from "node:crypto";
import { uptime } from "node:os";
import { elapsedTime, wallTime } from "./clocks.ts";
import type { Clock } from "./runtime.ts";

/** Milliseconds from the start of the monotonic clock to the start of this process. */
const BEGUN = Number(process.hrtime.bigint()) / 1e6 - performance.now();

export const systemClock: Clock = {
  wallClock: () => wallTime(Date.now()),
  elapsed: () => elapsedTime(BEGUN + performance.now()),
  uptime: () => uptime() * 1000,
  worked: () => performance.eventLoopUtilization().active,
  setTimer(milliseconds, callback) {
    const timer = setTimeout(callback, milliseconds);
    return { cancel: () => clearTimeout(timer) };
  },
  soon: (callback) => void setImmediate(callback),
  random: () => Math.random(),
  uuid: () => randomUUID(),
  step() {},
};
