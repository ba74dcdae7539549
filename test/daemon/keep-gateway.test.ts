/** When a daemon starts the gateway again. That the program does start is held by test/mount/own-gateway. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { startLock } from "../../src/daemon/gateway-record.ts";
import { keepGateway } from "../../src/daemon/keep-gateway.ts";
import { elapsedTime } from "../../src/lib/clocks.ts";
import { SILENT } from "../../src/lib/log.ts";

const BASE_URL = "http://127.0.0.1:1";

/** A keeper whose gateway always ends before it serves, by a clock that stands still. */
function begin() {
  const data = mkdtempSync(join(tmpdir(), "wsfs-kept-"));
  onTestFinished(() => rmSync(data, { recursive: true }));
  const counted = { starts: 0, letGo: 0, now: 0 };
  const keeper = keepGateway(
    data,
    BASE_URL,
    SILENT,
    (folder) => {
      expect(folder).toBe(data);
      counted.starts++;
      return {
        announced: Promise.resolve(undefined),
        exited: Promise.resolve(),
        logPath: join(data, "gateway.log"),
        letGo: () => void counted.letGo++,
      };
    },
    () => elapsedTime(counted.now),
  );
  const looks = async (count: number) => {
    for (let i = 0; i < count; i++) await keeper.look();
    return counted.starts;
  };
  return { data, keeper, counted, looks };
}

test("a gateway that cannot start is started five times within a minute, not without end", async () => {
  const { keeper, counted, looks } = begin();
  keeper.begin();
  expect(await looks(4)).toBe(4);
  counted.now = 30_000;
  expect(await looks(20)).toBe(5);
  counted.now = 59_999;
  expect(await looks(20)).toBe(5);
  // The first four are a minute ago, the fifth is not.
  counted.now = 60_000;
  expect(await looks(20)).toBe(9);
  expect(counted.letGo).toBe(9);
});

test("is started by one look at a time, only while it is wanted and no other daemon starts it", async () => {
  const { data, keeper, counted, looks } = begin();
  expect(await looks(3)).toBe(0);
  keeper.begin();
  await Promise.all([keeper.look(), keeper.look()]);
  expect(counted.starts).toBe(1);
  const other = startLock(data);
  expect(other.take()).toBe(true);
  expect(await looks(3)).toBe(1);
  other.close();
  expect(await looks(1)).toBe(2);
  keeper.end();
  expect(await looks(3)).toBe(2);
});
