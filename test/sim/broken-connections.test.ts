/**
 * Connections break while the gateway is well: what was on them is sent again, and nothing else waits for long. A
 * gateway that is away is asked ever more seldom, and what never gets through is not sent without end.
 */
import { expect, test } from "vitest";
import type { HttpRequest } from "../../src/contract/http.ts";
import { begin } from "./support/one-world.ts";

const TIMEOUT = { timeout: 60_000 };
const isWrite = ({ method }: HttpRequest) => method !== "GET";

test("every third connection breaks: a hundred files are there within seconds", TIMEOUT, async () => {
  const it = await begin(true);
  let sent = 0;
  it.rules.choose = (request) => (isWrite(request) && ++sent % 3 === 0 ? "lost-before" : "none");
  for (let index = 0; index < 100; index += 1) await it.save(`f${index}`);
  const begun = it.world.clock.elapsed();
  await it.drain();
  // The debounce, a few turns of what broke, and the index.
  expect(it.world.clock.elapsed() - begun).toBeLessThan(3_000);
  expect(sent).toBeGreaterThan(100);
});

test("what breaks each time is sent ever more seldom, though all else is answered", TIMEOUT, async () => {
  const it = await begin(true);
  let sent = 0;
  it.rules.choose = (request) => {
    if (!isWrite(request)) return "none";
    sent += 1;
    return "lost-before";
  };
  await it.save("a");
  await it.world.clock.advance(10 * 60_000);
  expect(sent).toBeGreaterThan(5);
  // The file and the time of its folder, each after one second, two, four, and so on.
  expect(sent).toBeLessThan(30);
  it.rules.choose = () => undefined;
  await it.ends(["a"]);
});

test("a gateway that is away is asked at once whether it is, then at most every five seconds", TIMEOUT, async () => {
  const it = await begin(true);
  let asked = 0;
  await it.world.clock.advance(5_000);
  it.rules.choose = () => {
    asked += 1;
    return "lost-before";
  };
  await it.world.clock.advance(60_000);
  const inAMinute = asked;
  expect(inAMinute).toBeGreaterThan(10);
  expect(inAMinute).toBeLessThan(60);
  await it.world.clock.advance(60_000);
  expect(asked - inAMinute).toBeLessThan(40);
  it.rules.choose = () => undefined;
  await it.world.clock.advance(6_000);
  expect(it.mount.process?.engine.condition().online).toBe(true);
});
