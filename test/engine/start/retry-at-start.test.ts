import { describe, expect, it } from "vitest";
import { RemoteError, type RemoteErrorCode } from "../../../src/client/errors.ts";
import { ONE_TRY, type RetryBudget, retryAtStart } from "../../../src/engine/start/index.ts";
import { millisecondsOf } from "../../../src/lib/clocks.ts";
import { createVirtualClock } from "../../support/virtual-clock.ts";

/** Asks a gateway that fails `failures` times, each after `takesMs`; what came of it, and when. */
async function ask(
  patience: RetryBudget,
  code: RemoteErrorCode,
  failures: number,
  takesMs = 0,
  details: ConstructorParameters<typeof RemoteError>[2] = {},
) {
  const clock = createVirtualClock();
  let calls = 0;
  const asked = retryAtStart(clock, patience, async () => {
    calls += 1;
    if (takesMs > 0) await new Promise<void>((resolve) => void clock.setTimer(takesMs, resolve));
    if (calls <= failures) {
      throw new RemoteError(code, "it fails", details);
    }
    return "answer";
  }).catch((error: unknown) => String(error));
  let outcome: string | undefined;
  void asked.then((value) => {
    outcome = value;
  });
  for (let steps = 0; outcome === undefined && steps < 1000; steps++) await clock.advance(10);
  return { outcome, calls, ms: millisecondsOf(clock.elapsed()) };
}

describe("a gateway that fails", () => {
  it("is asked again for a while, and the first failure is told", async () => {
    const told: string[] = [];
    const patience = { limitMs: 5000, onWait: (error: RemoteError) => told.push(error.message) };
    for (const code of ["offline", "server", "throttled"] as const) {
      expect(await ask(patience, code, 6)).toMatchObject({ outcome: "answer", calls: 7 });
    }
    expect(told).toEqual(["it fails", "it fails", "it fails"]);
  });

  it("is given up when the time is up", async () => {
    const { outcome, calls, ms } = await ask({ limitMs: 3000 }, "server", 1e9);
    expect(outcome).toBe("RemoteError: it fails");
    // 50 + 100 + 200 + 400 + 800 + 1000 + 1000 ms
    expect([calls, Math.round(ms / 100)]).toEqual([8, 36]);
  });

  it("is asked again for a moment where it can be done without, and nothing is told", async () => {
    const told: string[] = [];
    const patience = { ...ONE_TRY, onWait: () => told.push("waiting") };
    expect(await ask(patience, "offline", 3)).toMatchObject({ outcome: "answer", calls: 4 });
    expect(await ask(patience, "offline", 4)).toMatchObject({ outcome: "RemoteError: it fails", calls: 4 });
    expect(told).toEqual([]);
  });

  it("is not asked again where it can be done without and no connection was taken", async () => {
    const unheard = { isUnsent: true } as const;
    expect(await ask(ONE_TRY, "offline", 1, 0, unheard)).toMatchObject({ outcome: "RemoteError: it fails", calls: 1 });
    expect(await ask({ limitMs: 0 }, "offline", 1, 0, unheard)).toMatchObject({ outcome: "answer", calls: 2 });
  });

  it("has used up the patience by a long silence", async () => {
    expect(await ask({ limitMs: 5000 }, "silent", 1e9, 6000)).toMatchObject({ calls: 1 });
    expect(await ask({ limitMs: 5000 }, "silent", 1, 3000)).toMatchObject({ outcome: "answer", calls: 2 });
  });

  it("says itself when to come again, within the patience", async () => {
    const late = await ask({ limitMs: 5000 }, "throttled", 1, 0, { retryAfterMs: 2000 });
    expect([late.outcome, late.calls, Math.round(late.ms / 100)]).toEqual(["answer", 2, 20]);
    const never = await ask({ limitMs: 1000 }, "throttled", 1e9, 0, { retryAfterMs: 1e9 });
    expect([never.calls, Math.round(never.ms / 100)]).toEqual([2, 10]);
  });

  it.each(["unauthorized", "forbidden", "notFound", "malformed", "invalid"] as const)(
    "is not asked again after %s",
    async (code) => {
      expect(await ask({ limitMs: 5000 }, code, 1)).toMatchObject({ outcome: "RemoteError: it fails", calls: 1 });
    },
  );
});
