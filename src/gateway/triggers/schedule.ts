/**
 * Times of a cron expression: five fields of numbers, names, ranges, lists and steps, in a time zone. A time that a
 * change of clocks skips comes at the change. A time that occurs twice counts the first time, if an hour is named.
 */

import { Cron } from "croner";
import type { TriggerCondition } from "../../contract/triggers.ts";
import { MINUTE_MS } from "../../lib/time.ts";
import { invalid } from "../problems.ts";

type ScheduleCondition = Extract<TriggerCondition, { schedule: unknown }>["schedule"];

export interface Schedule {
  /** Returns the first time after a moment, both in milliseconds since the epoch; undefined: there is none. */
  next(after: number): number | undefined;
  /** Returns the last time up to `now`; `due`: a time that has come by then. */
  latest(due: number, now: number): number;
}

const VALUE = String.raw`(?:\d{1,2}|[A-Za-z]{3})`;
const RANGE = String.raw`(?:\*|${VALUE}(?:-${VALUE})?)(?:/\d{1,2})?`;
const FIELD = new RegExp(`^${RANGE}(?:,${RANGE})*$`);
const ZONE = /^[A-Za-z][\w+/-]*$/;
const EXPECTED = 'expected five fields (minute, hour, day of the month, month, day of the week), like "30 6 * * 1-5"';

/** Throws a 400 when the expression is invalid, or its times never come. `now`: milliseconds since the epoch. */
export function checkSchedule({ cron, timeZone = "UTC" }: ScheduleCondition, now: number): Schedule {
  if (!isZone(timeZone)) {
    throw invalid("on.schedule.timeZone", `on.schedule.timeZone: expected one like "Europe/Berlin", got ${timeZone}`);
  }
  const fields = cron.trim().split(/\s+/);
  if (fields.length !== 5 || !fields.every((field) => FIELD.test(field))) {
    throw invalid("on.schedule.cron", `on.schedule.cron: ${EXPECTED}; got ${cron}`);
  }
  try {
    const schedule = scheduleOf(fields.join(" "), timeZone);
    if (schedule.next(now) !== undefined) return schedule;
  } catch (error) {
    const why = error instanceof Error ? error.message.replace(/^CronPattern: /, "") : String(error);
    throw invalid("on.schedule.cron", `on.schedule.cron: ${EXPECTED}; got ${cron}: ${why}`);
  }
  throw invalid("on.schedule.cron", `on.schedule.cron: expected times that come, got ${cron}, which never does`);
}

/** Returns the schedule of a checked expression. */
export function scheduleOf(cron: string, timeZone = "UTC"): Schedule {
  // Paused and without a function it sets no timer: the clock of the gateway decides.
  const times = new Cron(cron, { mode: "5-part", timezone: timeZone, paused: true });
  const next = (after: number) => times.nextRun(new Date(after))?.getTime();
  return {
    next,
    latest(due, now) {
      const second = next(due);
      if (second === undefined || second > now) return due;
      // Times are whole minutes, and a later moment has a later next time. So the range is halved until one time is
      // left.
      let [low, high] = [due, now];
      while (high - low >= MINUTE_MS) {
        const middle = Math.floor((low + high) / 2);
        const time = next(middle);
        if (time !== undefined && time <= now) low = middle;
        else high = middle;
      }
      return next(low) ?? due;
    },
  };
}

function isZone(timeZone: string): boolean {
  if (!ZONE.test(timeZone)) return false;
  try {
    new Intl.DateTimeFormat("en", { timeZone });
    return true;
  } catch {
    return false;
  }
}
