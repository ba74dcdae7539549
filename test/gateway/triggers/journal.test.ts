/** Triggers on the journal: what starts an engine, what never does, and what comes of an engine that fails. */
import { beforeEach, describe, expect, test } from "vitest";
import { openSqlite } from "../../../src/lib/sqlite/index.ts";
import { accountToken, newAccount } from "../../support/account-token.ts";
import { createTestCore, type TestCore } from "../../support/gateway-core.ts";
import { createMemoryBlobs } from "../../support/memory-blobs.ts";
import { createVirtualClock } from "../../support/virtual-clock.ts";
import { causes, ENGINE, endAll, executions, makeTrigger, tokenOf, triggerNow, withEngines } from "./support.ts";

const INBOX = { journal: { path: "/inbox/**" } };
const SECOND = 1000;

let core: TestCore;
beforeEach(async () => {
  core = createTestCore();
  await core.file("/inbox/before", "x");
  await withEngines(core, "scan", "sort");
});

const save = async (path: string, options = {}) => {
  const made = await core.file(path, "x", options);
  await core.clock.advance(0);
  return made;
};

test("each entry that is meant starts one execution, from the present on", async () => {
  const trigger = await makeTrigger(core, { on: INBOX, input: { size: 5 } });
  expect(await causes(core)).toEqual([]);
  const made = await save("/inbox/a");
  await save("/elsewhere/b");
  await save("/inbox/deep/c");
  // The folder that was made on the way, too.
  expect(await causes(core)).toEqual(["a", "deep", "c"]);
  const [first, , last] = await executions(core);
  expect(first).toMatchObject({
    engine: { name: "scan" },
    input: { size: 5 },
    by: null,
    cause: { triggerId: trigger.id, entry: { nodeId: made.id, kind: "created", position: made.position } },
  });
  expect(await triggerNow(core, trigger)).toMatchObject({ lastExecutionId: last?.id, failures: 0, detail: null });
});

test("kinds are meant by name; a path is that of the time of the entry", async () => {
  await makeTrigger(core, { on: { journal: { path: "/inbox/*", kinds: ["moved", "renamed", "deleted", "seen"] } } });
  const file = await save("/elsewhere/f");
  const inbox = (await core.call("GET", "/v1/files/inbox")).json.id;
  await core.call("PATCH", `/v1/nodes/${file.id}`, { json: { parentId: inbox } });
  await core.call("POST", "/v1/journal", { json: { nodeId: file.id, kind: "seen" } });
  // Deleted, and its folder moved away, in one turn: by the time it is looked at, the path is another.
  const removal = core.call("DELETE", `/v1/nodes/${file.id}`);
  await Promise.all([removal, core.call("PATCH", `/v1/nodes/${inbox}`, { json: { name: "outbox" } })]);
  await core.clock.advance(0);
  expect((await executions(core)).map(({ cause }) => cause?.entry?.kind)).toEqual(["moved", "seen", "deleted"]);
});

test("what it is told to be once more, as after an answer that was lost, passes over nothing", async () => {
  const trigger = await makeTrigger(core, { on: INBOX });
  const installation = core.database.prepare("SELECT id FROM installation WHERE engine_name = 'scan'").pluck().get();
  await core.call("DELETE", `/v1/installations/${String(installation)}`);
  await save("/inbox/a");
  expect(await causes(core)).toEqual([]);
  await core.call("POST", "/v1/installations", { json: { engine: "scan" } });
  await core.call("PATCH", `/v1/triggers/${trigger.id}`, { json: { on: INBOX, isEnabled: true } });
  await core.clock.advance(SECOND);
  expect(await causes(core)).toEqual(["a"]);
});

test("a trigger that is off passes over what comes, and starts with what comes after", async () => {
  const trigger = await makeTrigger(core, { on: INBOX, isEnabled: false });
  const patch = (json: object) => core.call("PATCH", `/v1/triggers/${trigger.id}`, { json });
  await save("/inbox/a");
  await patch({ isEnabled: true });
  await save("/inbox/b");
  await patch({ isEnabled: false });
  await save("/inbox/c");
  await patch({ isEnabled: true, on: { journal: { path: "/outbox/*" } }, input: 7 });
  await save("/inbox/d");
  await save("/outbox/e");
  expect(await causes(core)).toEqual(["b", "e"]);
  expect((await executions(core)).at(-1)?.input).toBe(7);
  expect((await core.call("DELETE", `/v1/triggers/${trigger.id}`)).status).toBe(204);
  await save("/outbox/f");
  expect((await executions(core)).length).toBe(2);
});

test("where there is no trigger that is on, nothing waits and nothing is read", async () => {
  expect(core.clock.nextTimer()).toBeUndefined();
  const trigger = await makeTrigger(core, { on: INBOX });
  expect(core.clock.nextTimer()).toBeDefined();
  await core.call("PATCH", `/v1/triggers/${trigger.id}`, { json: { isEnabled: false } });
  await core.clock.settle();
  expect(core.clock.nextTimer()).toBeUndefined();
  await save("/inbox/a");
  expect(core.clock.nextTimer()).toBeUndefined();
});

test("a trigger that comes in the turn in which the last one goes is looked after", async () => {
  const first = await makeTrigger(core, { on: INBOX });
  const gone = core.call("DELETE", `/v1/triggers/${first.id}`);
  const second = makeTrigger(core, { name: "second", on: INBOX });
  await Promise.all([gone, second]);
  await save("/inbox/a");
  expect((await executions(core)).map(({ cause }) => cause?.triggerId)).toEqual([(await second).id]);
});

describe("an execution", () => {
  const BY = { scopes: ENGINE.scopes };

  test("never starts the trigger that started it, by what it writes or by its states", async () => {
    expect(BY.scopes.length).toBeGreaterThan(0);
    const states = ["queued", "running", "succeeded"].map((state) => `execution.${state}`);
    await makeTrigger(core, { on: { journal: { kinds: ["created", "updated", ...states] } } });
    await save("/inbox/a");
    const [first] = await executions(core);
    await save("/inbox/by-it", { token: tokenOf(core, first?.id ?? "") });
    await endAll(core);
    expect(await causes(core)).toEqual(["a"]);
    // Its token is good no more; somebody else's write is meant.
    await save("/inbox/b");
    expect(await causes(core)).toEqual(["a", "b"]);
  });

  test("starts others, and these never the first: A, B, and not A again", async () => {
    const [a, b] = [
      await makeTrigger(core, { name: "a", engine: "scan", on: INBOX }),
      await makeTrigger(core, { name: "b", engine: "sort", on: INBOX }),
    ];
    await core.call("PATCH", `/v1/triggers/${b.id}`, { json: { on: { journal: { path: "/inbox/by-a*" } } } });
    await save("/inbox/start");
    const [first] = await executions(core);
    await save("/inbox/by-a", { token: tokenOf(core, first?.id ?? "") });
    const [, second] = await executions(core);
    await save("/inbox/by-a-and-b", { token: tokenOf(core, second?.id ?? "") });
    await endAll(core);
    expect((await executions(core)).map(({ cause }) => [cause?.triggerId, cause?.entry?.name])).toEqual([
      [a.id, "start"],
      [b.id, "by-a"],
    ]);
  });

  test("nor does one that it starts by a call", async () => {
    core.accounts.engines.add({ ...ENGINE, name: "caller", scopes: [...ENGINE.scopes, "execution.execution.run"] });
    await core.call("POST", "/v1/installations", { json: { engine: "caller" } });
    await makeTrigger(core, { engine: "caller", on: INBOX });
    await save("/inbox/a");
    const [first] = await executions(core);
    const token = tokenOf(core, first?.id ?? "");
    const called = await core.call("POST", "/v1/executions", { token, json: { engine: "scan" } });
    await core.clock.advance(0);
    await save("/inbox/by-the-called", { token: tokenOf(core, called.json.id) });
    expect(await causes(core)).toEqual(["a", undefined]);
  });

  test("of others, by what it tells of itself, starts nothing unless that is named", async () => {
    await makeTrigger(core, { name: "every", on: { journal: {} } });
    const chained = await makeTrigger(core, {
      name: "after",
      engine: "sort",
      on: { journal: { kinds: ["execution.succeeded"] } },
    });
    const called = await core.call("POST", "/v1/executions", { json: { engine: "scan" } });
    await core.clock.advance(0);
    core.engines.end(called.json.id);
    await core.clock.advance(0);
    await endAll(core);
    expect((await executions(core)).map(({ cause }) => cause?.triggerId)).toEqual([undefined, chained.id]);
  });
});

describe("what fails", () => {
  test("is tried again after 1 s, 2 s, 4 s, at most an hour, in order; and says why", async () => {
    const trigger = await makeTrigger(core, { on: INBOX });
    const [installation] = (await core.call("GET", "/v1/installations")).json.items;
    await core.call("DELETE", `/v1/installations/${installation?.id}`);
    await save("/inbox/a");
    await save("/inbox/b");
    const begun = core.clock.wallClock();
    const pauses: number[] = [];
    for (let failures = 1; failures <= 15; failures += 1) {
      const now = await triggerNow(core, trigger);
      expect(now).toMatchObject({ failures, detail: "The engine scan is not installed in the workspace." });
      pauses.push(Date.parse(now.nextAt ?? "") - core.clock.wallClock());
      await core.clock.advance(pauses.at(-1) ?? 0);
    }
    expect(begun).toBeLessThan(core.clock.wallClock());
    expect(pauses).toEqual(
      [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3600, 3600, 3600].map((s) => s * SECOND),
    );
    await core.call("POST", "/v1/installations", { json: { engine: "scan" } });
    // Who changes it has it tried again at once.
    await core.call("PATCH", `/v1/triggers/${trigger.id}`, { json: {} });
    await core.clock.advance(0);
    expect(await causes(core)).toEqual(["a", "b"]);
    expect(await triggerNow(core, trigger)).toMatchObject({ failures: 0, detail: null, nextAt: null });
  });

  test.each([
    [
      "its account's role",
      "The trigger's account may not run engines in the workspace any more.",
      () => {
        const carl = core.accounts.accounts.find("carl");
        core.accounts.accounts.setRole(carl?.id ?? "", core.workspace.id, "viewer");
      },
    ],
    [
      "its account",
      "The trigger's account may not run engines in the workspace any more.",
      () => {
        core.accounts.accounts.remove(core.accounts.accounts.find("carl")?.id ?? "");
      },
    ],
    [
      "its engine",
      'engine: there is no engine "scan".',
      () => {
        core.accounts.engines.remove(core.accounts.engines.find("scan")?.id ?? "");
      },
    ],
  ])("says so after the removal of %s", async (_, detail, remove) => {
    const carl = newAccount(core.accounts, "carl");
    core.accounts.accounts.setRole(carl.id, core.workspace.id, "owner");
    const token = accountToken(core.accounts, core.clock, carl, { workspace: core.workspace.id });
    const trigger = await makeTrigger(core, { on: INBOX }, { token });
    expect(trigger.by).toEqual({ account: "carl" });
    await save("/inbox/a");
    expect((await executions(core))[0]?.by).toEqual({ account: "carl" });
    await endAll(core);
    remove();
    await save("/inbox/b");
    const now = await triggerNow(core, trigger);
    expect([now.failures, now.detail?.slice(0, detail.length)]).toEqual([1, detail]);
    expect(await causes(core)).toEqual(["a"]);
  });

  test("by its exit code is not run again, but makes a pause, until one succeeds", async () => {
    const trigger = await makeTrigger(core, { on: INBOX });
    await save("/inbox/a");
    const [first] = await executions(core);
    core.engines.end(first?.id ?? "", { exitCode: 3 });
    await core.clock.advance(0);
    expect(await triggerNow(core, trigger)).toMatchObject({
      failures: 1,
      detail: `The execution ${first?.id} did not succeed: It ended with exit code 3.`,
      nextAt: new Date(core.clock.wallClock() + SECOND).toISOString(),
    });
    await save("/inbox/b");
    await core.clock.advance(SECOND - 1);
    expect(await causes(core)).toEqual(["a"]);
    await core.clock.advance(1);
    expect(await causes(core)).toEqual(["a", "b"]);
    await endAll(core, 1);
    await save("/inbox/c");
    await core.clock.advance(2 * SECOND - 1);
    expect(await causes(core)).toEqual(["a", "b"]);
    await core.clock.advance(1);
    await endAll(core);
    expect(await triggerNow(core, trigger)).toMatchObject({ failures: 0, detail: null, nextAt: null });
    await save("/inbox/d");
    expect(await causes(core)).toEqual(["a", "b", "c", "d"]);
  });

  test("all at once counts once", async () => {
    const trigger = await makeTrigger(core, { on: INBOX });
    for (let n = 0; n < 20; n += 1) await save(`/inbox/${n}`);
    await endAll(core, 1);
    expect((await triggerNow(core, trigger)).failures).toBe(1);
  });

  test("is noticed though others go on", async () => {
    const trigger = await makeTrigger(core, { on: INBOX });
    await save("/inbox/a");
    await save("/inbox/b");
    core.engines.end(core.engines.running()[0] ?? "", { exitCode: 1 });
    await core.clock.advance(0);
    expect((await triggerNow(core, trigger)).failures).toBe(1);
  });

  test("unexpectedly, as at a full disk, is done a second later; and one trigger keeps no other up", async () => {
    let disk: "well" | "full after a commit" | "full" = "well";
    const step = (label: string) => {
      if (disk === "full after a commit" && label === "gateway: committed") disk = "full";
      else if (disk === "full" && label === "gateway: about to commit") throw new Error("disk full");
    };
    const blobs = createMemoryBlobs();
    const clock = { ...createVirtualClock(), step };
    core = createTestCore({}, { clock, blobs, database: openSqlite(":memory:") });
    await core.file("/inbox/before", "x");
    await withEngines(core, "scan");
    const broken = await makeTrigger(core, { name: "a", on: INBOX });
    await makeTrigger(core, { name: "b", on: INBOX });
    core.database.prepare("UPDATE engine_trigger SET condition = '{' WHERE id = ?").run(broken.id);
    await save("/inbox/a");
    expect(await causes(core)).toEqual(["a"]);
    disk = "full after a commit";
    await save("/inbox/b");
    expect([disk, await causes(core)]).toEqual(["full", ["a"]]);
    disk = "well";
    await clock.advance(SECOND);
    expect(await causes(core)).toEqual(["a", "b"]);
  });

  test("a pause that was made before the clock was set back ends all the same", async () => {
    await makeTrigger(core, { on: INBOX });
    await save("/inbox/a");
    await endAll(core, 1);
    core.clock.jump(-30 * 86_400_000);
    await save("/inbox/b");
    await core.clock.advance(SECOND);
    expect(await causes(core)).toEqual(["a", "b"]);
  });
});

test("whoever changes a trigger last is whose account it runs for", async () => {
  const trigger = await makeTrigger(core, { on: INBOX });
  const eve = newAccount(core.accounts, "eve");
  core.accounts.accounts.setRole(eve.id, core.workspace.id, "owner");
  const token = accountToken(core.accounts, core.clock, eve);
  const changed = await core.call("PATCH", `/v1/triggers/${trigger.id}`, { token, json: { input: "evil" } });
  expect([changed.status, changed.json.by]).toEqual([200, { account: "eve" }]);
  await save("/inbox/a");
  expect((await executions(core))[0]).toMatchObject({ by: { account: "eve" }, input: "evil" });
});

test("200 saves at once are 200 executions, each once", { timeout: 60_000 }, async () => {
  await makeTrigger(core, { on: { journal: { path: "/inbox/*", kinds: ["created", "updated"] } } });
  const names = Array.from({ length: 200 }, (_, n) => `${n}`);
  await Promise.all(names.map((name) => core.file(`/inbox/${name}`, name)));
  await core.clock.advance(0);
  await endAll(core);
  expect((await causes(core)).toSorted()).toEqual(names.toSorted());
  const file = await core.call("GET", "/v1/files/inbox/0");
  for (let n = 0; n < 200; n += 1) {
    await core.upload(`/v1/nodes/${file.json.id}/content`, `${n}`, { method: "PUT" });
  }
  await core.clock.advance(0);
  await endAll(core);
  const revisions = (await executions(core)).slice(200).map(({ cause }) => cause?.entry?.revision);
  expect(revisions).toEqual(Array.from({ length: 200 }, (_, n) => n + 2));
});

test("what comes while as many wait as may, waits in the journal: none is lost", { timeout: 120_000 }, async () => {
  core = createTestCore();
  const trigger = await makeTriggerOfMany();
  const names = Array.from({ length: 1100 }, (_, n) => `${n}`.padStart(4, "0"));
  for (const name of names) await core.file(`/inbox/${name}`, name);
  await core.clock.advance(0);
  expect(await triggerNow(core, trigger)).toMatchObject({
    failures: 1,
    detail: "1000 executions wait in the workspace, which are as many as may.",
  });
  core.gateway.engines?.begin("http://gateway.test");
  const ended: string[] = [];
  for (let rounds = 0; ended.length < names.length && rounds < 2000; rounds += 1) {
    for (const id of core.engines.running()) {
      ended.push(id);
      core.engines.end(id);
    }
    await core.clock.advance(500);
  }
  const started = core.engines.started.map(({ files }) => JSON.parse(files["execution.json"] ?? "").cause.entry.name);
  expect(started).toEqual(names);
  expect(await triggerNow(core, trigger)).toMatchObject({ failures: 0, detail: null });
});

async function makeTriggerOfMany() {
  core.accounts.engines.add({ ...ENGINE, name: "scan" });
  await core.call("POST", "/v1/installations", { json: { engine: "scan" } });
  await core.file("/inbox/before", "x");
  return makeTrigger(core, { on: { journal: { path: "/inbox/*", kinds: ["created"] } } });
}
