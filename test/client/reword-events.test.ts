/** Events in another gateway's words: those that came are told, one without end is refused as what it is. */
import { expect, test } from "vitest";
import { EVENT_SIZE_MAX, rewordEvents } from "../../src/client/reword-events.ts";

test("one that is too long ends the stream as malformed, after those before it", async () => {
  async function* body() {
    yield Buffer.from(`data: first\n\ndata: ${"x".repeat(EVENT_SIZE_MAX)}`);
    yield Buffer.from(": there is more of it\n\n");
  }
  const events = rewordEvents(body(), (data) => data.toUpperCase())[Symbol.asyncIterator]();
  const first = await events.next();
  expect(Buffer.from(first.value ?? []).toString()).toBe("data: FIRST\n\n");
  await expect(events.next()).rejects.toMatchObject({
    code: "malformed",
    message: expect.stringContaining("longer than"),
  });
});
