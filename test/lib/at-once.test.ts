import { expect, test } from "vitest";
import { forEachAtOnce } from "../../src/lib/at-once.ts";

/** Work that ends when it is told to. */
function makeWork() {
  const begun: number[] = [];
  const ends = new Map<number, (error?: Error) => void>();
  return {
    begun,
    work: (item: number) => {
      begun.push(item);
      return new Promise<void>((resolve, reject) =>
        ends.set(item, (error) => (error === undefined ? resolve() : reject(error))),
      );
    },
    async end(item: number, error?: Error) {
      ends.get(item)?.(error);
      await new Promise(setImmediate);
    },
  };
}

test("so many at a time, each once, in their order; done when the last has ended", async () => {
  const { begun, work, end } = makeWork();
  let isDone = false;
  const done = forEachAtOnce([1, 2, 3, 4], 2, work).then(() => {
    isDone = true;
  });
  expect(begun).toEqual([1, 2]);
  await end(2);
  expect(begun).toEqual([1, 2, 3]);
  await end(1);
  await end(4);
  expect([begun, isDone]).toEqual([[1, 2, 3, 4], false]);
  await end(3);
  await done;
});

test("after a failure none is begun, and it rejects with the first when those under way have ended", async () => {
  const { begun, work, end } = makeWork();
  let rejection: unknown;
  const done = forEachAtOnce([1, 2, 3, 4], 2, work).catch((error: unknown) => {
    rejection = error;
  });
  await end(1, new Error("first"));
  expect([begun, rejection]).toEqual([[1, 2], undefined]);
  await end(2, new Error("second"));
  await done;
  expect([begun, rejection]).toEqual([[1, 2], new Error("first")]);
});

test("of nothing it is done at once", async () => {
  await forEachAtOnce([], 3, () => Promise.reject(new Error("nothing was to be done")));
});
