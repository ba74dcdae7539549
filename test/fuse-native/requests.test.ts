/** Calls of libfuse under way: a thread waits for each, so each is answered, whatever becomes of the answer. */
import { expect, it } from "vitest";
import { createRequests } from "../../src/fuse-native/requests.ts";
import { SILENT } from "../../src/lib/log.ts";
import { createVirtualClock } from "../support/virtual-clock.ts";

it("an answer that cannot be given is a failure, and what it gave is taken back", async () => {
  const told: unknown[] = [];
  const requests = createRequests({
    clock: createVirtualClock(),
    deadlineMs: 1000,
    log: SILENT,
    unheard: () => told.push("unheard"),
    noteProgramTime() {},
  });
  const kind = { name: "OPEN", local: true, changes: true, undo: (value: number) => told.push(`${value} taken back`) };
  const answer = () => {
    throw new RangeError("too long for its buffer");
  };
  requests.begin(
    kind,
    [],
    () => 7,
    answer,
    (result) => told.push(result),
  );
  await requests.drained();
  await new Promise((resolve) => setImmediate(resolve));
  expect(told).toEqual([-5, "unheard", "7 taken back"]);
  expect(requests.count()).toBe(0);
});
