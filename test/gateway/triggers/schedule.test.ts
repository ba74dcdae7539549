/** Schedules: which expressions there are, when they come, and that each time starts one execution whatever the clock does. */
import { beforeEach, describe, expect, test } from "vitest";
import { checkSchedule, scheduleOf } from "../../../src/gateway/triggers/schedule.ts";
import { createTestCore, type TestCore } from "../../support/gateway-core.ts";
import { endAll, executions, makeTrigger, post, triggerNow, withEngines } from "./support.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** The test's clock begins here. */
const START = Date.UTC(2026, 0, 1);

let core: TestCore;
beforeEach(async () => {
  core = createTestCore();
  await withEngines(core, "scan");
});

const at = (cron: string, timeZone?: string) => ({
  on: { schedule: timeZone === undefined ? { cron } : { cron, timeZone } },
});
const times = async () =>
  (await executions(core)).map(({ cause }) => (Date.parse(cause?.scheduledFor ?? "") - START) / MINUTE);

test("each time starts one execution, and the next one is shown", async () => {
  const trigger = await makeTrigger(core, at("*/15 * * * *"));
  expect(trigger.nextAt).toBe("2026-01-01T00:15:00.000Z");
  await core.clock.advance(15 * MINUTE - 1);
  expect(await times()).toEqual([]);
  await core.clock.advance(1);
  expect(await times()).toEqual([15]);
  await core.clock.advance(HOUR);
  expect(await times()).toEqual([15, 30, 45, 60, 75]);
  expect((await triggerNow(core, trigger)).nextAt).toBe("2026-01-01T01:30:00.000Z");
});

test("of those that were missed while the gateway was down the latest starts, once", async () => {
  await makeTrigger(core, at("*/15 * * * *"));
  core.gateway.endStreams();
  await core.clock.settle();
  await core.clock.advance(10 * DAY + 5 * MINUTE);
  core = core.restart();
  await core.clock.settle();
  expect(await times()).toEqual([10 * 24 * 60]);
  core.gateway.endStreams();
  core = core.restart();
  await core.clock.advance(9 * MINUTE);
  expect((await times()).length).toBe(1);
  await core.clock.advance(MINUTE);
  expect((await times()).length).toBe(2);
});

test("a time that comes again, for the clock was set back, starts nothing", async () => {
  await makeTrigger(core, at("*/15 * * * *"));
  await core.clock.advance(30 * MINUTE);
  core.clock.jump(-25 * MINUTE);
  await core.clock.advance(25 * MINUTE);
  expect(await times()).toEqual([15, 30]);
  await core.clock.advance(15 * MINUTE);
  expect(await times()).toEqual([15, 30, 45]);
});

test("one that was made while the clock was years ahead comes once that is set right", async () => {
  core.clock.jump(1000 * DAY);
  const trigger = await makeTrigger(core, at("*/15 * * * *"), { token: core.token() });
  core.clock.jump(-1000 * DAY);
  await core.clock.advance(MINUTE);
  expect((await triggerNow(core, trigger)).nextAt).toBe("2026-01-01T00:15:00.000Z");
  await core.clock.advance(HOUR);
  expect(await times()).toEqual([15, 30, 45, 60]);
});

test("the machine slept, or its clock was set forward: within half a minute the latest starts", async () => {
  await makeTrigger(core, at("*/15 * * * *"));
  core.clock.sleep(5 * HOUR);
  await core.clock.advance(30_000);
  expect(await times()).toEqual([300]);
});

test("one that cannot be started is tried again until it can, or the next one is due", async () => {
  const trigger = await makeTrigger(core, at("0 * * * *"));
  const [installation] = (await core.call("GET", "/v1/installations")).json.items;
  await core.call("DELETE", `/v1/installations/${installation?.id}`);
  await core.clock.advance(HOUR);
  expect(await triggerNow(core, trigger)).toMatchObject({ failures: 1, nextAt: "2026-01-01T01:00:01.000Z" });
  await core.clock.advance(2 * HOUR);
  await core.call("POST", "/v1/installations", { json: { engine: "scan" } });
  await core.clock.advance(HOUR);
  expect(await times()).toEqual([180, 240]);
});

test("one that is switched on begins with the next time", async () => {
  const trigger = await makeTrigger(core, { ...at("0 * * * *"), isEnabled: false });
  expect(trigger.nextAt).toBeNull();
  await core.clock.advance(90 * MINUTE);
  const patched = await core.call("PATCH", `/v1/triggers/${trigger.id}`, { json: { isEnabled: true } });
  expect(patched.json.nextAt).toBe("2026-01-01T02:00:00.000Z");
  await core.clock.advance(30 * MINUTE);
  await endAll(core);
  expect(await times()).toEqual([120]);
});

describe("an expression", () => {
  const nexts = (cron: string, timeZone: string, from: string, count: number) => {
    const schedule = scheduleOf(cron, timeZone);
    const found: string[] = [];
    for (let time = Date.parse(from); found.length < count; ) {
      time = schedule.next(time) ?? Number.NaN;
      found.push(new Date(time).toISOString().slice(0, 16));
    }
    return found;
  };

  test.each([
    ["30 6 * * 1-5", "UTC", "2026-01-02T07:00Z", ["2026-01-05T06:30", "2026-01-06T06:30"]],
    ["0 0 13 * FRI", "UTC", "2026-02-07T00:00Z", ["2026-02-13T00:00", "2026-02-20T00:00"]],
    ["0 0 29 FEB *", "UTC", "2096-03-01T00:00Z", ["2104-02-29T00:00"]],
    ["0 12 * * *", "Asia/Kolkata", "2026-01-01T00:00Z", ["2026-01-01T06:30"]],
    // The clocks go from 2:00 to 3:00: what is left out comes then.
    ["30 2 * * *", "Europe/Berlin", "2026-03-28T12:00Z", ["2026-03-29T01:00", "2026-03-30T00:30"]],
    // From 3:00 back to 2:00: the first time alone.
    ["30 2 * * *", "Europe/Berlin", "2026-10-24T12:00Z", ["2026-10-25T00:30", "2026-10-26T01:30"]],
    [
      "*/30 * * * *",
      "Europe/Berlin",
      "2026-10-25T00:10Z",
      ["2026-10-25T00:30", "2026-10-25T01:00", "2026-10-25T01:30"],
    ],
  ])("%s in %s after %s", (cron, zone, from, expected) => {
    expect(nexts(cron, zone, from, expected.length)).toEqual(expected);
  });

  test("the latest of many is found without a look at each", () => {
    const schedule = scheduleOf("* * * * *");
    expect(schedule.latest(START, START + 3000 * DAY + 30_000)).toBe(START + 3000 * DAY);
    expect(schedule.latest(START, START)).toBe(START);
    expect(scheduleOf("0 0 1 1 *").latest(START, START + 364 * DAY)).toBe(START);
    const weekly = scheduleOf("5 4 * * 0", "America/New_York");
    const first = weekly.next(START) ?? 0;
    for (let day = 0; day < 40; day += 1) {
      const now = first + day * DAY;
      let expected = first;
      for (let next = weekly.next(expected) ?? 0; next <= now; next = weekly.next(expected) ?? 0) expected = next;
      expect(weekly.latest(first, now)).toBe(expected);
    }
  });

  test.each([
    "",
    " ",
    "* * * *",
    "* * * * * *",
    "0 0 30 2 *",
    "0 0 31 2,4,6,9,11 *",
    "60 * * * *",
    "*/0 * * * *",
    "5-1 * * * *",
    "0 0 L * *",
    "0 0 15W * *",
    "0 0 * * 1#2",
    "0 0 ? * *",
    "@daily",
    "@reboot",
    "2026-01-01T00:00:00",
    "0 0 32 * *",
    "* * * * XYZ",
    "1-99999999 * * * *",
    `${"1,".repeat(99)}1`,
    "*".repeat(200),
    "1-".repeat(100),
    "((a+)+)+$ * * * *",
    "0 0 * * *\u0000",
  ])("that is none, or never comes, is refused by name: %j", (cron) => {
    expect(() => checkSchedule({ cron }, START)).toThrow(/^on\.schedule\.cron: expected /);
  });

  test("or its zone, or both", async () => {
    for (const timeZone of ["Mars/Phobos", "+05:00", "x".repeat(64), "Europe/Berlin\n", "../etc", "5"]) {
      const answer = await post(core, at("* * * * *", timeZone));
      expect([timeZone, answer.status, answer.json.field]).toEqual([timeZone, 400, "on.schedule.timeZone"]);
    }
    const both = { schedule: { cron: "* * * * *" }, journal: {} };
    for (const on of [both, {}, { schedule: {} }, { cron: "* * * * *" }, "* * * * *"]) {
      expect((await post(core, { on })).status).toBe(400);
    }
    const never = await post(core, at("0 0 30 2 *"));
    expect([never.status, never.json.field]).toEqual([400, "on.schedule.cron"]);
  });
});
