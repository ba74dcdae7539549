/** Whose turn it is: nothing waits for ever, for others or for its own next change. On the virtual clock. */
import { expect, test } from "vitest";
import { RemoteError } from "../../src/client/errors.ts";
import type { HttpRequest } from "../../src/contract/http.ts";
import { BULK_BYTES } from "../../src/vfs/writeback/lanes.ts";
import type { Calls } from "./support/calls.ts";
import { begin, there } from "./support/one-world.ts";
import { runProgram } from "./support/programs.ts";
import { readFile } from "./support/tree.ts";

const TIMEOUT = { timeout: 120_000 };
/** Less than the quiet that is waited for; see mount.ts. */
const AGAIN_MS = 250;
/** More than requests may be in flight. */
const BIG_FILES = 20;
/** The quiet that is waited for, and a request. */
const SOON_MS = 2_000;

const isUploadOf = (name: string, { method, path }: HttpRequest) =>
  method === "POST" && path.startsWith("/v1/files/") && path.includes(name);

test("a file that is saved again before it was quiet is sent all the same, at its maximum age", TIMEOUT, async () => {
  const { world, mount, save, asked, content } = await begin(true);
  const { debounceMs, maximumAgeMs } = mount.process?.engine.context.settings ?? { debounceMs: 0, maximumAgeMs: 0 };
  expect(AGAIN_MS).toBeLessThan(debounceMs);
  const isArrived = async () => (await there(world)).has("a");
  const saves = Math.ceil((3 * maximumAgeMs) / AGAIN_MS);
  for (let saved = 1; saved <= saves; saved += 1) {
    await save("a", `save ${saved}`);
    await world.clock.advance(AGAIN_MS);
    if (saved * AGAIN_MS > maximumAgeMs + debounceMs) expect(await isArrived()).toBe(true);
  }
  // Once each maximum age, not once each save.
  expect(asked.length).toBeGreaterThanOrEqual(2);
  expect(asked.length).toBeLessThan(saves / 2);
  expect(await content("a")).toContain(`save ${saves}`);
});

test("while big files take all the places they may, a small one goes at once and no ls waits", TIMEOUT, async () => {
  const { world, calls, rules, save, asked, names } = await begin(true);
  // Of the big ones no answer comes until the client gives up.
  rules.choose = (request) => (isUploadOf("big", request) ? "silent-before" : "none");
  const big = Array.from({ length: BIG_FILES }, (_, index) => `big-${index}`);
  for (const path of big) await world.run(runProgram(calls(), { do: "save", path, size: BULK_BYTES }, path));
  await world.clock.advance(SOON_MS);
  for (let round = 0; round < 10; round += 1) {
    await save(`small-${round}`);
    await world.clock.advance(SOON_MS);
    expect(asked.filter((line) => line.includes(`small-${round}`))).toHaveLength(1);
    const begun = world.clock.elapsed();
    expect(await names()).toHaveLength(BIG_FILES + round + 1);
    await world.run(calls().stat("big-0"));
    expect(world.clock.elapsed()).toBe(begun);
  }
  // Refused or not, the big ones had their tries meanwhile, and arrive when they may.
  rules.choose = () => "none";
  await world.clock.advance(300_000);
  expect([...(await there(world)).keys()]).toEqual(expect.arrayContaining(big));
});

test(
  "what comes due while the gateway has asked for a pause goes when that is over, whatever is under way",
  TIMEOUT,
  async () => {
    const { world, mount, calls, rules, save, asked } = await begin(true);
    rules.choose = (request) => (isUploadOf("big", request) ? "silent-before" : "none");
    await world.run(runProgram(calls(), { do: "save", path: "big", size: BULK_BYTES }, "big"));
    await world.clock.advance(SOON_MS);
    const { network } = mount.process?.engine.context ?? {};
    const details = { status: 429, operation: "upload", retryAfterMs: SOON_MS } as const;
    network?.failed(new RemoteError("throttled", "too many requests", details));
    await save("small");
    await world.clock.advance(SOON_MS - 100);
    const ofSmall = () => asked.filter((line) => line.includes("small")).length;
    expect(ofSmall()).toBe(0);
    await world.clock.advance(SOON_MS);
    expect(ofSmall()).toBe(1);
  },
);

test(
  "without versions, files so new that they cannot be read yet hold up nothing that is to be sent",
  TIMEOUT,
  async () => {
    const { world, mount, calls, save, asked } = await begin(true, {}, { lacks: ["versions", "references"] });
    world.setLag({ path: 0, journal: 0, id: 9_000 });
    // More than it takes for an outage, were each of them one.
    const fresh = Array.from({ length: 9 }, (_, index) => `fresh-${index}`);
    const bytes = Buffer.alloc(5_000, "fresh");
    for (const name of fresh) {
      await world.run(
        world.outside.upload(world.workspace.root, name, {
          size: bytes.length,
          read: async function* () {
            yield bytes;
          },
        }),
      );
    }
    await world.run(calls().list(""));
    const network = mount.process?.engine.context.network;
    const reads = fresh.map((name) => readFile(calls(), name));
    await save("mine");
    for (let waited = 0; waited < SOON_MS; waited += 100) {
      await world.clock.advance(100);
      expect(network?.pauseMs("changes")).toBe(0);
    }
    expect(asked.filter((line) => line.includes("mine"))).toHaveLength(1);
    for (const read of await world.run(Promise.all(reads))) expect(bytes.equals(read)).toBe(true);
  },
);

test.each([0, 1, 2, 3, 5, 8])(
  "a big file whose hash comes %i turns after the end of a look is sent at once",
  TIMEOUT,
  async (turns) => {
    const { world, mount, calls, save, asked } = await begin(true);
    const context = mount.process?.engine.context;
    if (context === undefined) throw new Error("the mount is down");
    const { files } = context.runtime;
    const { nodes } = context.metadata;
    const { hash } = files;
    const { nextDueAfter } = nodes;
    let release: (() => void) | undefined;
    Object.assign(files, {
      async hash(path: string, signal?: AbortSignal) {
        await new Promise<void>((resolve) => {
          release = resolve;
        });
        return hash(path, signal);
      },
    });
    // What a look ends with while something is under way.
    Object.assign(nodes, {
      nextDueAfter(now: number) {
        const next = nextDueAfter(now);
        const go = release;
        if (go === undefined || asked.every((line) => !line.includes("small"))) return next;
        let over = Promise.resolve();
        for (let turn = 0; turn < turns; turn += 1) over = over.then(() => {});
        if (turns === 0) go();
        else void over.then(go);
        return next;
      },
    });
    await world.run(runProgram(calls(), { do: "save", path: "big", size: 3 * BULK_BYTES }, "big"));
    await world.clock.advance(SOON_MS);
    expect(release).toBeDefined();
    await save("small");
    await world.clock.advance(SOON_MS);
    expect(asked.filter((line) => line.includes("big"))).toHaveLength(1);
  },
);

test.each([
  ["a program hears first", async (calls: Calls) => void (await calls.list("there"))],
  ["the journal is heard first, and a node that was to be read fails", undefined],
] as const)("the gateway answers again, %s: what had failed often before is tried at once", TIMEOUT, async (_, ask) => {
  const { world, mount, calls, rules, save, metadata } = await begin(true);
  await world.run(world.outside.createFolder(world.workspace.root, "there"));
  await world.clock.advance(10_000);
  await world.run(calls().stat("there"));
  const { id } = (await world.run(world.outside.listFolder(world.workspace.root))).items[0] ?? expect.unreachable();
  rules.choose = (request) => (isUploadOf("a", request) ? "failed" : "none");
  await save("a");
  const nextAt = () => metadata().attempts.open()[0]?.nextAt ?? 0;
  const now = () => mount.process?.engine.context.runtime.now() ?? 0;
  while (nextAt() - now() < 25_000) await world.clock.advance(100);
  const isRead = (request: HttpRequest) => request.method === "GET" && request.path.endsWith(id);
  rules.choose = (request) => (ask === undefined && isRead(request) ? "failed" : "none");
  mount.weather.isOffline = true;
  await world.clock.advance(10_000);
  expect(mount.process?.engine.context.network.isOnline).toBe(false);
  mount.weather.isOffline = false;
  if (ask === undefined) metadata().rereads.add(id);
  else await world.run(ask(calls()));
  await world.clock.advance(8_000);
  expect((await there(world)).has("a")).toBe(true);
});
