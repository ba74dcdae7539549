/** A mount whose account may not write, at first, from some moment on, or again: by the real core, on the virtual clock. */
import { describe, expect, test } from "vitest";
import type { Role } from "../../src/contract/roles.ts";
import { createReadOnly } from "../../src/vfs/context/read-only.ts";
import type { QueueItem } from "../../src/vfs/engine.ts";
import { accountToken, newAccount } from "../support/account-token.ts";
import { codeOf } from "./support/calls.ts";
import { begin, there } from "./support/one-world.ts";

const TIMEOUT = { timeout: 120_000 };
/** Longer than an id that answers 404 counts as merely late. */
const LONG_MS = 15 * 60_000;
/** A look at the workspace, and what is sent for it. */
const SOON_MS = 25_000;
const MANY = Array.from({ length: 40 }, (_, index) => `f${String(index).padStart(2, "0")}`);
/** With the time of the folder they are in. */
const UNSENT = MANY.length + 1;

/** One mount with ada's tokens, for one workspace if they are bound; she is an editor at first. */
async function mountOfAda(isBound = false) {
  let token: (() => string) | undefined;
  const one = await begin(true, {
    request: (request) =>
      token === undefined
        ? request
        : { ...request, headers: { ...request.headers, authorization: `Bearer ${token()}` } },
  });
  const { world, mount, calls } = one;
  const { accounts } = world.accounts;
  const ada = newAccount(world.accounts, "ada");
  const setRole = (role: Role | undefined) => {
    if (role === undefined) accounts.removeRole(ada.id, world.workspace.id);
    else accounts.setRole(ada.id, world.workspace.id, role);
  };
  setRole("editor");
  token = () => accountToken(world.accounts, world.clock, ada, isBound ? { workspace: world.workspace.id } : {});
  await one.again("remount");
  const engine = () => {
    if (mount.process === undefined) throw new Error("the mount is down");
    return mount.process.engine;
  };
  return {
    ...one,
    engine,
    setRole,
    said: (work: Promise<unknown>) => world.run(work.then(() => "done", codeOf)),
    make: (name: string) => calls().mkdir(name),
    drain: () => world.run(engine().drain({ settle: false, signal: new AbortController().signal })),
    async queue(): Promise<QueueItem[]> {
      const list = async () => {
        const all: QueueItem[] = [];
        for await (const some of engine().queue(100)) all.push(...some);
        return all.filter(({ path }) => path !== "/");
      };
      return world.run(list());
    },
    refusals: () => one.asked.filter((line) => line.endsWith("403")).length,
    there: async () => [...(await there(world)).keys()],
  };
}

const AS_VIEWER = /^your role in workspace "workspace" is viewer, changing files takes editor: ask an owner of it/;
const AS_STRANGER = /^you have no role in workspace "workspace" any more: ask an owner of it/;

test(
  "a role that becomes too low: a few refusals, then all waits; it goes by itself when the role is given",
  TIMEOUT,
  async () => {
    const { world, save, setRole, engine, refusals, there, said, make, drain, queue, content, calls, again } =
      await mountOfAda();
    await save("before");
    await world.clock.advance(10_000);
    expect(await there()).toEqual(["before"]);
    setRole("viewer");
    for (const name of MANY) await save(name);
    await world.clock.advance(SOON_MS);
    // Those that were on their way when the first answer came.
    expect(refusals()).toBeGreaterThan(0);
    expect(refusals()).toBeLessThanOrEqual(8);
    const before = refusals();
    expect(engine().status()).toMatchObject({
      readOnly: expect.stringMatching(AS_VIEWER),
      dirty: UNSENT,
      parked: 0,
    });
    expect(engine().status().paused).toBe(undefined);
    expect(new Set((await queue()).map(({ state, why }) => `${state} ${why.slice(0, 40)}`)).size).toBe(1);
    // A program hears that it cannot save; what is there is read.
    expect([await said(make("no")), await said(calls().unlink("before"))]).toEqual(["EROFS", "EROFS"]);
    expect((await content("f00")).length).toBe(40);
    const { drained, left } = await drain();
    expect([drained, left[0]]).toEqual([false, expect.stringContaining("your role")]);
    await world.clock.advance(60_000);
    expect(await world.run(engine().retry())).toMatchObject({ held: { why: expect.stringContaining("your role") } });
    await world.clock.advance(60_000);
    expect(refusals()).toBe(before);
    // As a new mount hears at once.
    await again("crash");
    expect([engine().status().readOnly, engine().status().dirty]).toEqual([expect.stringMatching(AS_VIEWER), UNSENT]);
    setRole("editor");
    await world.clock.advance(SOON_MS);
    expect(await there()).toEqual(["before", ...MANY]);
    expect([engine().status().readOnly, engine().status().dirty, refusals()]).toEqual([undefined, 0, before]);
    world.end();
  },
);

test("who asks for a retry has the role looked at, at once", TIMEOUT, async () => {
  const { world, save, setRole, engine, there } = await mountOfAda();
  setRole("viewer");
  await save("f");
  await world.clock.advance(SOON_MS);
  setRole("editor");
  expect(await world.run(engine().retry())).toEqual({ retried: 2, unknown: [] });
  await world.clock.advance(1_000);
  expect(await there()).toEqual(["f"]);
  world.end();
});

test.each([{ isBound: false }, { isBound: true }])(
  "a role that is taken away: nothing that is here goes, nothing unsent is lost; given again, all goes on (bound: $isBound)",
  TIMEOUT,
  async ({ isBound }) => {
    const ofAda = await mountOfAda(isBound);
    const { world, save, setRole, engine, there, said, make, names, content, rename, asked } = ofAda;
    for (const name of ["kept", "moved"]) await save(name);
    await world.clock.advance(10_000);
    setRole(undefined);
    await save("unsent");
    await save("kept", "newer");
    await rename("moved", "elsewhere");
    const mine = await content("kept");
    await world.clock.advance(SOON_MS);
    expect(engine().status()).toMatchObject({ readOnly: expect.stringMatching(AS_STRANGER), parked: 0, live: false });
    expect(await said(make("no"))).toBe("EROFS");
    const before = asked.length;
    await world.clock.advance(LONG_MS);
    expect(asked.length).toBe(before);
    const { dirty } = engine().status();
    expect([await names(), dirty]).toEqual([["elsewhere", "kept", "unsent"], 4]);
    setRole("editor");
    await world.clock.advance(SOON_MS);
    expect(await there()).toEqual(["elsewhere", "kept", "unsent"]);
    expect([await content("kept"), engine().status().dirty, engine().status().live]).toEqual([mine, 0, true]);
    // By the stream again, not by pages alone.
    await world.clock.advance(60_000);
    await world.run(world.outside.createFolder(world.workspace.root, "theirs"));
    await world.clock.advance(300);
    expect(await names()).toEqual(["elsewhere", "kept", "theirs", "unsent"]);
    world.end();
  },
);

test(
  "a viewer's mount refuses changes from the start, and takes them soon after the role is given",
  TIMEOUT,
  async () => {
    const { world, setRole, engine, again, said, make, there, refusals } = await mountOfAda();
    setRole("viewer");
    await again("remount");
    expect(engine().condition().readOnly).toMatch(AS_VIEWER);
    expect([await said(make("no")), refusals()]).toEqual(["EROFS", 0]);
    setRole("owner");
    await world.clock.advance(SOON_MS);
    expect(await said(make("yes"))).toBe("done");
    await world.clock.advance(10_000);
    expect(await there()).toEqual(["yes"]);
    world.end();
  },
);

test.each([{ isBound: false }, { isBound: true }])(
  "a stranger's mount does not start, and says that no such workspace is visible (bound: $isBound)",
  TIMEOUT,
  async ({ isBound }) => {
    const { world, setRole, mount } = await mountOfAda(isBound);
    await world.run(mount.stop());
    setRole(undefined);
    await expect(world.run(mount.start())).rejects.toThrow(/^no workspace "workspace" is visible to this token[;,] /);
    world.end();
  },
);

describe("a gateway that tells of no roles", () => {
  const workspace = { id: "w", name: "w", rootId: "r" };

  test("is tried again by changes once it was asked for the workspace", () => {
    const changes: boolean[] = [];
    const readOnly = createReadOnly(workspace, {
      isAskedFor: false,
      lack: undefined,
      onChange: (is) => changes.push(is),
    });
    readOnly.refused({ workspace: "w", role: "editor" });
    expect(readOnly.why).toBe('changing files in workspace "w" takes the role editor');
    readOnly.shown(workspace);
    expect([readOnly.why, changes]).toEqual([undefined, [true, false]]);
  });
});
