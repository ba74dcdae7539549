/** A token, its scopes or the account's role do not suffice: what is refused to programs, what waits, how it is told, and how it goes on. */

import { describe, expect, test } from "vitest";
import type { HttpRequest } from "../../src/contract/http.ts";
import type { Role } from "../../src/contract/roles.ts";
import { SCOPES } from "../../src/contract/scopes.ts";
import { kernelNodeId } from "../../src/metadata/ids.ts";
import { CALLER } from "../engine/start/bytes-world.ts";
import { accountToken, newAccount } from "../support/account-token.ts";
import { PLAIN } from "../support/features.ts";
import { codeOf } from "./support/calls.ts";
import { tampered } from "./support/tampered.ts";
import { beginTwo, TURNS_MS } from "./support/two-world.ts";

describe("scopes and refused tokens", () => {
  const TIMEOUT = { timeout: 120_000 };

  const isUpload = ({ method, path }: HttpRequest) => method === "POST" && path.startsWith("/v1/files/");

  test("a scope the token lacks (403) pauses what needs it after one request, and nothing else", TIMEOUT, async () => {
    const { world, save, unlink, withBearer, tokenWith, tokenChanged, asked, there, engine, queue, heal } =
      await tampered();
    for (const name of ["a", "b", "c", "d"]) await save(name);
    await world.clock.advance(10_000);
    withBearer(tokenWith(SCOPES.filter((scope) => scope !== "node.file.delete")));
    await unlink("a");
    await world.clock.advance(10_000);
    await save("e");
    await world.clock.advance(60_000);
    const refused = () => asked.filter((line) => line.startsWith("DELETE") && line.endsWith("403")).length;
    expect(refused()).toBe(1);
    expect(await there()).toEqual(["a", "b", "c", "d", "e"]);
    expect(engine().status().paused).toContain("node.file.delete");
    expect(await queue()).toMatchObject([{ path: "/a", what: "delete", state: "waiting" }]);
    expect((await queue())[0]?.why).toMatch(/^the token lacks node\.file\.delete, it goes with one that has it/);
    // It is tried again, ever more seldom.
    await world.clock.advance(3_600_000);
    expect(refused()).toBeGreaterThan(1);
    expect(refused()).toBeLessThan(7);
    // Another token: at once.
    heal();
    tokenChanged();
    await world.clock.advance(5_000);
    expect(await there()).toEqual(["b", "c", "d", "e"]);
    expect(engine().status().paused).toBe(undefined);
  });

  test("a folder that waits for its name is read by its id now and then", TIMEOUT, async () => {
    const { world, rules, calls, drain, withBearer, tokenWith } = await tampered({ features: PLAIN });
    await world.run(calls().mkdir("d"));
    await world.run(calls().mkdir("e"));
    await drain();
    const { items } = await world.run(world.outside.listFolder(world.workspace.root));
    const path = `/v1/nodes/${items.find(({ name }) => name === "e")?.id}`;
    let reads = 0;
    rules.choose = (request) => {
      if (request.method === "GET" && request.path === path) reads += 1;
      return undefined;
    };
    withBearer(tokenWith(SCOPES.filter((scope) => scope !== "node.file.delete")));
    await world.run(calls().rmdir("d"));
    await world.run(calls().rename("e", "d"));
    await world.clock.advance(120_000);
    expect(reads).toBeGreaterThan(0);
    expect(reads).toBeLessThan(12);
  });

  const lacking = SCOPES.filter((scope) => scope !== "node.file.read");

  describe("a scope was refused for long", () => {
    const posts = (asked: readonly string[]) => asked.filter((line) => line.startsWith("POST")).length;

    test("what waits for it goes soon after something else went that takes it", TIMEOUT, async () => {
      const { world, save, withBearer, tokenWith, asked, there, heal } = await tampered();
      withBearer(tokenWith(lacking));
      await save("a");
      // Tried after five minutes, after ten and twenty more.
      await world.clock.advance(40 * 60_000);
      expect(posts(asked)).toBeLessThan(5);
      await world.run(world.outside.createFolder(world.workspace.root, "b"));
      await world.clock.advance(10_000);
      expect(await there()).toEqual(["b"]);
      heal();
      await world.clock.advance(10_000);
      expect(await there()).toEqual(["a", "b"]);
    });

    test("and that has another reason: it is not tried with each thing that is read", TIMEOUT, async () => {
      const { world, save, withBearer, tokenWith, asked } = await tampered();
      withBearer(tokenWith(lacking), isUpload);
      await save("a");
      for (let minute = 0; minute < 60; minute += 1) {
        await world.run(world.outside.createFolder(world.workspace.root, `b${minute}`));
        await world.clock.advance(60_000);
      }
      expect(world.lines.filter((line) => line.includes("GET /v1/nodes/")).length).toBeGreaterThan(50);
      expect(posts(asked)).toBeGreaterThan(5);
      expect(posts(asked)).toBeLessThan(15);
    });
  });

  test(
    "a scope that only a reference to other content takes (403): it waits and is not sent again and again",
    TIMEOUT,
    async () => {
      const { world, save, rename, withBearer, tokenWith, asked, there, engine, heal, tokenChanged, drain } =
        await tampered();
      await save("a");
      await save("b");
      await drain();
      withBearer(tokenWith(lacking), ({ method, path }) => method === "POST" && path.endsWith("/versions"));
      await rename("b", "a");
      await world.clock.advance(60_000);
      expect(asked.filter((line) => line.endsWith("/versions 403"))).toHaveLength(1);
      expect(engine().status().paused).toContain("node.file.read");
      heal();
      tokenChanged();
      await world.clock.advance(60_000);
      expect(await there()).toEqual(["a"]);
    },
  );

  test("a scope nobody expects a request to need (403) does not make it go again and again", TIMEOUT, async () => {
    const { world, unlink, save, withBearer, tokenWith, asked, there, tamper, heal, drain } = await tampered();
    await save("a");
    await drain();
    // Without node.file.delete, this gateway says, it wants another one.
    withBearer(tokenWith(SCOPES.filter((scope) => scope !== "node.node.update")));
    tamper.change = (
      (change) => (request) =>
        request.method === "DELETE"
          ? { ...change(request), method: "PATCH", body: { kind: "json", value: {} } }
          : request
    )(tamper.change);
    await unlink("a");
    await world.clock.advance(60_000);
    expect(asked.filter((line) => line.startsWith("PATCH") && line.endsWith("403")).length).toBeLessThan(10);
    heal();
    await world.clock.advance(60_000);
    expect(await there()).toEqual([]);
  });

  test("the try after a refused scope meets a conflict: the others do not wait for the next one", TIMEOUT, async () => {
    const { world, calls, withBearer, tokenWith, there, heal, save } = await tampered();
    withBearer(tokenWith(SCOPES.filter((scope) => scope !== "node.node.create")));
    await world.run(calls().mkdir("a"));
    await world.clock.advance(2_000);
    await save("b");
    await save("c");
    heal();
    // The journal is late: what is tried first is in somebody's way.
    world.setLag({ path: 600_000, journal: 600_000, id: 0 });
    await world.run(world.outside.createFolder(world.workspace.root, "a"));
    // Tried again after five minutes, or half as much more.
    await world.clock.advance(8 * 60_000);
    world.setLag({ path: 0, journal: 0, id: 0 });
    expect(await there()).toEqual(["a", "b", "c"]);
  });

  test(
    "at a plain gateway, the answer to the try after a refused scope is lost: the others do not wait for the next one",
    TIMEOUT,
    async () => {
      const { world, calls, withBearer, tokenWith, there, heal, save, rules } = await tampered({ features: PLAIN });
      withBearer(tokenWith(SCOPES.filter((scope) => scope !== "node.node.create")));
      await world.run(calls().mkdir("a"));
      await world.clock.advance(2_000);
      await save("b");
      await save("c");
      heal();
      let isTried = false;
      rules.choose = ({ method }) => {
        if (isTried || method !== "POST") return undefined;
        isTried = true;
        return "lost-after";
      };
      // Tried again after five minutes, or half as much more.
      await world.clock.advance(8 * 60_000);
      expect([isTried, await there()]).toEqual([true, ["a", "b", "c"]]);
    },
  );

  test(
    "a token that is refused (401) pauses the queue; the mount goes on, and so does the queue with a good one",
    TIMEOUT,
    async () => {
      const { world, save, content, names, there, engine, withBearer, heal, asked, queue } = await tampered();
      await save("a");
      await world.clock.advance(10_000);
      withBearer("x");
      // With a stream the journal is asked for twice a minute.
      await world.clock.advance(40_000);
      for (const name of ["b", "c", "d"]) await save(name);
      const before = asked.length;
      await world.clock.advance(3_600_000);
      expect(asked.length).toBe(before);
      expect(await names()).toEqual(["a", "b", "c", "d"]);
      expect((await content("a")).length).toBeGreaterThan(0);
      expect(engine().status().paused).toContain("login needed");
      const files = await queue();
      expect(files.map(({ state, why }) => [state, why.startsWith("login needed")])).toEqual(
        Array.from({ length: 3 }, () => ["waiting", true]),
      );
      heal();
      await world.clock.advance(10_000);
      expect(await there()).toEqual(["a", "b", "c", "d"]);
      expect(engine().status().paused).toBe(undefined);
    },
  );

  test(
    "a token is found to be good again within seconds, also while the stream of the journal is as it was",
    TIMEOUT,
    async () => {
      const { world, save, there, engine, withBearer, heal } = await tampered();
      await save("a");
      await world.clock.advance(40_000);
      withBearer("x");
      await save("b");
      await world.clock.advance(4_000);
      expect(engine().status().paused).toContain("login needed");
      heal();
      await world.clock.advance(3_000);
      expect(engine().status().paused).toBe(undefined);
      expect(await there()).toEqual(["a", "b"]);
    },
  );
});

describe("roles", () => {
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
    const one = await tampered();
    const { world, calls, engine } = one;
    const { accounts } = world.accounts;
    const ada = newAccount(world.accounts, "ada");
    const setRole = (role: Role | undefined) => {
      if (role === undefined) accounts.removeRole(ada.id, world.workspace.id);
      else accounts.setRole(ada.id, world.workspace.id, role);
    };
    setRole("editor");
    const binding = isBound ? { workspace: world.workspace.id } : {};
    one.withBearer(() => accountToken(world.accounts, world.clock, ada, binding));
    await one.again("remount");
    return {
      ...one,
      setRole,
      said: (work: Promise<unknown>) => world.run(work.then(() => "done", codeOf)),
      make: (name: string) => calls().mkdir(name),
      drain: () => world.run(engine().drain({ settle: false, signal: new AbortController().signal })),
      refusals: () => one.asked.filter((line) => line.endsWith("403")).length,
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

  test("a retry by hand looks at the role at once", TIMEOUT, async () => {
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
});

describe("whether what is shown is live", () => {
  const TIMEOUT = { timeout: 60_000 };

  /** Two looks at the token, and a request. */
  const SOON_MS = 5_000;

  /** A mount that is live, and the paths it asks for; its stream stays open when its requests bear another token. */
  async function started() {
    const it = await tampered();
    const seen: string[] = [];
    it.rules.choose = ({ path }) => {
      seen.push(path);
      return undefined;
    };
    await it.until(() => it.engine().status().live);
    await it.world.clock.advance(SOON_MS);
    expect(await it.names()).toEqual([]);
    expect(it.engine().status().live).toBe(true);
    return { ...it, seen };
  }

  test(
    "a token that is refused ends it, though the stream by the one before goes on; a good one brings it back",
    TIMEOUT,
    async () => {
      const { world, engine, withBearer, heal, names } = await started();
      withBearer("bad");
      const begun = world.clock.wallClock();
      await world.run(world.outside.createFolder(world.workspace.root, "theirs"));
      await world.clock.advance(SOON_MS);
      expect(await names()).toEqual([]);
      const { live, staleMs = 0, staleWhy } = engine().status();
      expect([live, staleWhy]).toEqual([false, expect.stringMatching(/^login needed.*401/)]);
      expect(staleMs).toBeLessThanOrEqual(world.clock.wallClock() - begun);
      // Heartbeats go on, and prove nothing.
      await world.clock.advance(60_000);
      expect(engine().status().live).toBe(false);
      heal();
      await world.clock.advance(SOON_MS);
      expect(engine().status()).toMatchObject({ live: true });
      expect(engine().status().staleWhy).toBe(undefined);
      expect(await names()).toEqual(["theirs"]);
      world.end();
    },
  );

  test("another token is tried at once on the journal, nobody having changed anything", TIMEOUT, async () => {
    const { world, engine, withBearer, tokenChanged, seen } = await started();
    seen.length = 0;
    tokenChanged();
    await world.clock.advance(SOON_MS);
    expect(seen).toEqual(expect.arrayContaining(["/v1/journal", "/v1/journal/stream"]));
    expect(engine().status().live).toBe(true);
    withBearer("bad");
    tokenChanged();
    await world.clock.advance(SOON_MS);
    expect(engine().status()).toMatchObject({ live: false, staleWhy: expect.stringContaining("login needed") });
    world.end();
  });

  test("a token that may not read the journal any more ends it", TIMEOUT, async () => {
    const { world, engine, withBearer, tokenWith, tokenChanged } = await started();
    const scopes = SCOPES.filter((scope) => scope !== "node.node.read-all");
    withBearer(tokenWith(scopes));
    tokenChanged();
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
      const { validMs } = await world.run(engine().fileSystem.getattr(CALLER, kernelNodeId(1)));
      expect(validMs).toBeLessThanOrEqual(1_000);
      expect(staleMs).toBeLessThanOrEqual(SOON_MS);
      mount.weather.isOffline = false;
      await world.clock.advance(2 * SOON_MS);
      expect(engine().status()).toMatchObject({ live: true, online: true });
      world.end();
    },
  );
});

test("what another deletes and restores while the account may not read it is there once it may", async () => {
  const { world, alpha, beta, calls, run, drain, nodes } = await beginTwo();
  await run(alpha, { do: "save", path: "a", size: 20 });
  await drain(alpha);
  await world.clock.advance(TURNS_MS);
  expect(await world.run(calls(beta).list(""))).toEqual(["a"]);
  const [{ id } = expect.unreachable("it was saved")] = await nodes();
  beta.weather.refusal = 403;
  await world.run(world.outside.deleteNode(id));
  await world.run(world.outside.restoreNode(id));
  await world.clock.advance(10_000);
  beta.weather.refusal = undefined;
  await world.clock.advance(TURNS_MS);
  expect(await world.run(calls(beta).list(""))).toEqual(["a"]);
  world.end();
});
