/** One name of a linked file is removed by another mount while the turn of who changed it is not over. */
import { expect, test } from "vitest";
import { beginTwo, TURNS_MS } from "./support/two-world.ts";

test("the others have all there is of it: nothing waits to be sent, not for a moment", async () => {
  const { world, alpha, beta, run, drain, calls } = await beginTwo();
  const dirty = () => beta.process?.engine.status().dirty;
  await run(alpha, { do: "save", path: "a", size: 40 }, "old");
  for (const to of ["b", "c"]) await run(alpha, { do: "link", path: "a", to });
  await drain(alpha);
  expect(await world.run(calls(beta).list(""))).toEqual(["a", "b", "c"]);
  await world.clock.advance(TURNS_MS);
  await run(alpha, { do: "save", path: "a", size: 40 }, "new");
  await run(alpha, { do: "link", path: "b", to: "d" });
  await drain(alpha);
  await world.clock.advance(1_000);
  expect(await world.run(calls(beta).list(""))).toEqual(["a", "b", "c", "d"]);
  await run(alpha, { do: "unlink", path: "d" });
  await drain(alpha);
  const seen: unknown[] = [];
  for (let time = 0; time < 40; time += 1) {
    await world.clock.advance(50);
    seen.push(dirty());
  }
  expect(await world.run(calls(beta).list(""))).toEqual(["a", "b", "c"]);
  expect(seen).toEqual(seen.map(() => 0));
});
