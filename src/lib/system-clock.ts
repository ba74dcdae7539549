/** The machine's own time and chance. Programs on a virtual clock take another `Clock`. */
import { randomUUID } from "node:crypto";
import type { Clock } from "./runtime.ts";

export const systemClock: Clock = {
  now: () => Date.now(),
  elapsed: () => performance.now(),
  setTimer(milliseconds, callback) {
    const timer = setTimeout(callback, milliseconds);
    return { cancel: () => clearTimeout(timer) };
  },
  soon: (callback) => void setImmediate(callback),
  random: () => Math.random(),
  uuid: () => randomUUID(),
  step() {},
};
