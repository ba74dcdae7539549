/** A body is read to its end, or to a limit, beyond which none of it is kept. */
import { expect, test } from "vitest";
import { RemoteError } from "../../src/client/errors.ts";
import { joined, readWhole } from "../../src/client/whole-body.ts";

const BLOCK = new Uint8Array(1000).fill(7);

test("whole, or with why not and what came until then", async () => {
  async function* body(end?: Error) {
    yield BLOCK;
    yield BLOCK;
    if (end !== undefined) throw end;
  }
  expect(joined((await readWhole(body(), 2000)).chunks)).toHaveLength(2000);
  const error = new Error("broken");
  expect(await readWhole(body(error), 2000)).toEqual({ chunks: [BLOCK, BLOCK], failure: { error } });
});

test("of one that is too long nothing is kept, and no more of it is asked for", async () => {
  let asked = 0;
  let isLeft = false;
  async function* endless() {
    try {
      for (;;) {
        asked += 1;
        yield BLOCK;
      }
    } finally {
      isLeft = true;
    }
  }
  const { chunks, failure } = await readWhole(endless(), 2500);
  expect({ chunks, asked, isLeft }).toEqual({ chunks: [], asked: 3, isLeft: true });
  expect(failure?.error).toBeInstanceOf(RemoteError);
});
