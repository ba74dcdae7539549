/** Retry-After holds back the kind of request it was an answer to, for five minutes at most; what others do is heard of meanwhile. */
import { expect, test } from "vitest";
import type { HttpRequest } from "../../src/contract/http.ts";
import { begin, there } from "./support/one-world.ts";

const TIMEOUT = { timeout: 60_000 };
const SOON_MS = 5_000;
const LIMIT_MS = 5 * 60_000;

const isUpload = ({ method, path }: HttpRequest) => method === "POST" && path.startsWith("/v1/files/");
const isList = ({ path }: HttpRequest) => path === "/v1/nodes";
const isPage = ({ path }: HttpRequest) => path === "/v1/journal";

async function started() {
  const sim = await begin(true);
  const { world, mount, names } = sim;
  const engine = () => {
    if (mount.process === undefined) throw new Error("the mount is down");
    return mount.process.engine;
  };
  await world.run(world.outside.createFolder(world.workspace.root, "before"));
  await sim.until(() => engine().status().live);
  await world.clock.advance(SOON_MS);
  expect(await names()).toEqual(["before"]);
  const others = async (name: string) => {
    await world.run(world.outside.createFolder(world.workspace.root, name));
    await world.clock.advance(SOON_MS);
    expect(await names()).toContain(name);
    expect(engine().status()).toMatchObject({ live: true, online: true });
  };
  return { ...sim, engine, others };
}

test.each(["throttled-long", "unavailable-long"] as const)(
  "uploads wait after one was %s, no longer than five minutes, and what others do is shown at once",
  TIMEOUT,
  async (fault) => {
    const { world, once, until, save, engine, others } = await started();
    const refused = once(fault, isUpload);
    await save("mine");
    await until(refused.isSent);
    const begun = world.clock.elapsed();
    await others("theirs");
    expect(engine().status().paused).toContain("takes no more");
    await save("another");
    await until(() => engine().status().dirty === 0, LIMIT_MS + SOON_MS);
    const waited = world.clock.elapsed() - begun;
    expect(waited).toBeGreaterThanOrEqual(LIMIT_MS - SOON_MS);
    expect([...(await there(world)).keys()]).toEqual(expect.arrayContaining(["mine", "another"]));
    world.end();
  },
);

test("who asks for it has it tried at once", TIMEOUT, async () => {
  const { world, once, until, save, engine } = await started();
  const refused = once("throttled-long", isUpload);
  await save("mine");
  await until(refused.isSent);
  await world.clock.advance(SOON_MS);
  expect(await world.run(engine().retry())).toEqual({ retried: 1, unknown: [] });
  await until(() => engine().status().dirty === 0, SOON_MS);
  world.end();
});

test("what is asked for by hand is held back no more where nodes could not be read", TIMEOUT, async () => {
  const { world, once, until, names, engine } = await started();
  const refused = once("throttled-long", ({ method, path }) => method === "GET" && /^\/v1\/nodes\/[^/]+$/.test(path));
  await world.run(world.outside.createFolder(world.workspace.root, "theirs"));
  await until(refused.isSent);
  await world.clock.advance(60_000);
  expect(await names()).toEqual(["before"]);
  expect(engine().status()).toMatchObject({ live: false, online: true });
  await world.run(engine().retry());
  await world.clock.advance(SOON_MS);
  expect(await names()).toContain("theirs");
  world.end();
});

test.each([
  { what: "lists", isIt: isList },
  { what: "pages of the journal", isIt: isPage },
])("$what that are to wait hold up neither uploads nor what comes by the stream", TIMEOUT, async ({ isIt }) => {
  const { world, rules, save, until, engine, others, calls } = await started();
  await world.run(world.outside.createFolder(world.workspace.root, "unknown"));
  await world.clock.advance(SOON_MS);
  const asked: number[] = [];
  rules.choose = (request) => {
    if (!isIt(request)) return undefined;
    asked.push(world.clock.elapsed());
    return "throttled-long";
  };
  // A page is asked for now and then, a list by who looks into what is not known.
  if (isIt === isList) await expect(world.run(calls().list("unknown"))).rejects.toThrow();
  else await until(() => asked.length > 0, 60_000);
  const before = asked.length;
  await others("theirs");
  await save("mine");
  await until(() => engine().status().dirty === 0, SOON_MS);
  // The next page would have been asked for by then.
  await world.clock.advance(30_000);
  expect(asked).toHaveLength(before);
  await others("more");
  world.end();
});
