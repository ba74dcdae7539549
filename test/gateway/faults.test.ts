import { expect, test } from "vitest";
import { ConnectionReset } from "../../src/gateway/faults.ts";
import { createTestCore } from "../support/gateway-core.ts";

test("each answer takes the latency, half of it before the effect", async () => {
  const core = createTestCore({ latencyMs: 100 });
  const start = core.clock.elapsed();
  let answered = false;
  const upload = core.upload("/v1/files/f", "x").then((answer) => {
    answered = true;
    return answer;
  });
  const count = () => core.database.prepare("SELECT count(*) FROM version").pluck().get();
  await core.clock.advance(49);
  expect(count()).toBe(0);
  await core.clock.advance(1);
  expect(count()).toBe(1);
  await core.clock.advance(49);
  expect(answered).toBe(false);
  await core.clock.advance(1);
  expect((await upload).status).toBe(201);
  expect(core.clock.elapsed() - start).toBe(100);
});

test("a share of requests fails: told before, lost before, lost after the effect", async () => {
  const core = createTestCore({ failRate: 0.5 });
  const outcomes = { answered: 0, refused: 0, before: 0, after: 0 };
  for (let index = 0; index < 600; index++) {
    const count = () => Number(core.database.prepare("SELECT count(*) FROM version").pluck().get());
    const before = count();
    try {
      const { status } = await core.upload(`/v1/files/${index}`, "x");
      expect([201, 503]).toContain(status);
      outcomes[status === 503 ? "refused" : "answered"] += 1;
      expect(count() - before).toBe(status === 503 ? 0 : 1);
    } catch (error) {
      expect(error).toBeInstanceOf(ConnectionReset);
      outcomes[count() === before ? "before" : "after"] += 1;
    }
  }
  expect(outcomes.answered).toBeGreaterThan(250);
  for (const kind of ["refused", "before", "after"] as const) expect(outcomes[kind]).toBeGreaterThan(70);
});

test("a lost answer comes back with the key", async () => {
  const core = createTestCore();
  core.gateway.setOptions({ failRate: 0.6 });
  for (let index = 0; index < 50; index++) {
    const metadata = { idempotencyKey: `k${index}` };
    for (let status = 0; status !== 201; ) {
      status = await core
        .upload(`/v1/files/${index}`, "x", { metadata, headers: { "if-none-match": "*" } })
        .then((answer) => answer.status)
        .catch(() => 0);
      expect([0, 201, 503]).toContain(status);
    }
  }
  core.gateway.setOptions({ failRate: 0 });
  const journal = await core.call("GET", "/v1/journal", { query: { pageSize: "1000" } });
  expect(journal.json.totalCount).toBe(51);
});
