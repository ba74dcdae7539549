/** What is shown counts as live only by what was heard with a token that is good now; else it is said since when it is not, and why. */
import { expect, test } from "vitest";
import { SCOPES } from "../../src/contract/scopes.ts";
import { signToken } from "../../src/gateway/tokens.ts";
import { begin } from "./support/one-world.ts";

const TIMEOUT = { timeout: 60_000 };
/** Two looks at the token, and a request. */
const SOON_MS = 5_000;
/** As world.ts has it. */
const KEY = Buffer.alloc(32, 7);

/** A mount that is live; `use` has its requests bear another token, its stream open as before. */
async function started() {
  let token: string | undefined;
  const seen: string[] = [];
  const sim = await begin(true, {
    request(request) {
      seen.push(request.path);
      return token === undefined
        ? request
        : { ...request, headers: { ...request.headers, authorization: `Bearer ${token}` } };
    },
  });
  const { world, mount, until } = sim;
  const engine = () => {
    if (mount.process === undefined) throw new Error("the mount is down");
    return mount.process.engine;
  };
  await until(() => engine().status().live);
  await world.clock.advance(SOON_MS);
  expect(await sim.names()).toEqual([]);
  expect(engine().status().live).toBe(true);
  const use = (other: string | undefined) => {
    token = other;
  };
  return { ...sim, engine, use, seen };
}

test(
  "a token that is refused ends it, though the stream by the one before goes on; a good one brings it back",
  TIMEOUT,
  async () => {
    const { world, engine, use, names } = await started();
    use("bad");
    const { context } = engine();
    const begun = world.clock.wallClock();
    await world.run(world.outside.createFolder(world.workspace.root, "theirs"));
    await world.clock.advance(SOON_MS);
    expect(await names()).toEqual([]);
    const { live, staleMs = 0, staleWhy } = engine().status();
    expect([live, staleWhy]).toEqual([false, expect.stringMatching(/^login needed.*401/)]);
    expect(staleMs).toBeLessThanOrEqual(world.clock.wallClock() - begun);
    // Heartbeats go on, and prove nothing.
    await world.clock.advance(60_000);
    expect([engine().status().live, context.fresh.isLive()]).toEqual([false, false]);
    use(undefined);
    await world.clock.advance(SOON_MS);
    expect(engine().status()).toMatchObject({ live: true });
    expect(engine().status().staleWhy).toBe(undefined);
    expect(await names()).toEqual(["theirs"]);
    world.end();
  },
);

test("another token is tried at once on the journal, nobody having changed anything", TIMEOUT, async () => {
  const { world, engine, use, seen } = await started();
  seen.length = 0;
  const { network } = engine().context;
  network.tokenChanged(undefined);
  await world.clock.advance(SOON_MS);
  expect(seen).toEqual(expect.arrayContaining(["/v1/journal", "/v1/journal/stream"]));
  expect(engine().status().live).toBe(true);
  use("bad");
  network.tokenChanged(undefined);
  await world.clock.advance(SOON_MS);
  expect(engine().status()).toMatchObject({ live: false, staleWhy: expect.stringContaining("login needed") });
  world.end();
});

test("a token that may not read the journal any more ends it", TIMEOUT, async () => {
  const { world, engine, use } = await started();
  const scopes = SCOPES.filter((scope) => scope !== "node.node.read-all");
  use(signToken(KEY, world.clock, { scopes, workspace: world.workspace.id, ttlSeconds: 86_400 }));
  engine().context.network.tokenChanged(undefined);
  await world.clock.advance(SOON_MS);
  expect(engine().status()).toMatchObject({ live: false, online: true, staleWhy: expect.stringContaining("403") });
  world.end();
});

test(
  "while the gateway does not answer it is not live, from the first call on that had no answer",
  TIMEOUT,
  async () => {
    const { world, engine, mount, save } = await started();
    mount.weather.isOffline = true;
    await save("mine");
    await world.clock.advance(SOON_MS);
    const { live, online, staleWhy, staleMs = 0 } = engine().status();
    expect([live, online, staleWhy]).toEqual([false, false, "the gateway does not answer"]);
    // The kernel believes nothing either.
    expect(engine().context.fresh.isLive()).toBe(false);
    expect(staleMs).toBeLessThanOrEqual(SOON_MS);
    mount.weather.isOffline = false;
    await world.clock.advance(2 * SOON_MS);
    expect(engine().status()).toMatchObject({ live: true, online: true });
    world.end();
  },
);
