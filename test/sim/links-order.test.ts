/** Hard links: which of two contents came later, where requests, mounts and the journal are late, lost or gone. */
import { expect, test } from "vitest";
import type { HttpRequest } from "../../src/contract/http.ts";
import { isContentWrite, refuseReferences } from "./support/content-write.ts";
import type { Mount } from "./support/mount.ts";
import { bytesOf, sourceOf } from "./support/programs.ts";
import { hashOf } from "./support/tree.ts";
import { beginTwo, TURNS_MS } from "./support/two-world.ts";

const SIZE = 40;

const hash = (label: string) => hashOf(bytesOf(label, SIZE));

/** `a` and one more name of it, which both mounts know, if it is in the root. */
async function begin(other: string, request = (one: HttpRequest) => one) {
  let puts = 0;
  const it = await beginTwo({
    request,
    onAnswer: (_, request, { status }) => {
      if (isContentWrite(request) && status < 300) puts += 1;
    },
  });
  const { world, alpha, beta, run, calls, labelOf, drain, nodes } = it;
  const shown = async (mount: Mount, folder = "") => {
    const all: Record<string, string> = {};
    for (const name of await world.run(calls(mount).list(folder))) {
      const path = folder === "" ? name : `${folder}/${name}`;
      if ((await world.run(calls(mount).stat(path))).kind !== "folder") all[name] = await labelOf(mount, path);
    }
    return all;
  };
  await run(alpha, { do: "mkdir", path: "d" });
  await run(alpha, { do: "save", path: "a", size: SIZE }, "old");
  await run(alpha, { do: "link", path: "a", to: other });
  await drain(alpha);
  await shown(beta);
  await world.clock.advance(TURNS_MS);
  const idOf = async (name: string) => (await nodes()).find((node) => node.name === name)?.id ?? "?";
  return {
    ...it,
    shown,
    idOf,
    puts: () => puts,
    save: (mount: Mount, path: string, label: string) => run(mount, { do: "save", path, size: SIZE }, label),
  };
}

const LATE = [
  { what: "the journal is late", lag: 60_000, isOffline: false },
  { what: "the gateway is out of reach", lag: 0, isOffline: true },
];

test.each(LATE)(
  "each has kept the other's, and $what until the turns are over: they do not overwrite each other for ever",
  async ({ lag, isOffline }) => {
    const { world, alpha, beta, rules, save, idOf, puts, shown } = await begin("b");
    const [a, b] = [await idOf("a"), await idOf("b")];
    // Of each save the name it was made by arrives first.
    rules.choose = ({ method, path, body }) => {
      const text = JSON.stringify(body ?? "");
      const isOther = (text.includes(hash("X")) && path.includes(b)) || (text.includes(hash("Y")) && path.includes(a));
      return isContentWrite({ method, path }) && isOther ? "failed" : undefined;
    };
    await save(alpha, "a", "X");
    await save(beta, "b", "Y");
    await world.clock.advance(2_000);
    rules.choose = () => undefined;
    await world.clock.advance(20_000);
    world.setLag({ path: lag, journal: lag, id: 0 });
    for (const mount of world.mounts) mount.weather.isOffline = isOffline;
    await world.clock.advance(200_000);
    for (const mount of world.mounts) mount.weather.isOffline = false;
    await world.clock.advance(4 * TURNS_MS);
    world.setLag({ path: 0, journal: 0, id: 0 });
    await world.clock.advance(2 * TURNS_MS);
    const before = puts();
    await world.clock.advance(6 * TURNS_MS);
    expect(puts()).toBe(before);
    expect(await shown(alpha)).toEqual(await shown(beta));
    expect(Object.values(await shown(alpha))).toEqual(expect.arrayContaining(["X", "Y"]));
  },
);

test("references are refused: while what one name has is read for the other's node, that gets it: it counts as sent", async () => {
  const { world, alpha, beta, rules, rows, run, save, idOf, puts, shown } = await begin("b", refuseReferences);
  const a = await idOf("a");
  let [isRead, isSent] = [false, false];
  rules.choose = ({ method, path }) => {
    const isPut = method === "PUT" && path.includes(a);
    if (isPut) isSent = isRead;
    if ((isPut && !isRead) || (method === "DELETE" && puts() === 0)) return "failed";
    if (method !== "GET" || !path.endsWith("/content")) return undefined;
    isRead = true;
    return isSent ? undefined : "failed";
  };
  // The name that is left has to have what came by the one that was removed.
  await run(alpha, { do: "unlink", path: "b" });
  await save(beta, "a", "X");
  for (let waited = 0; !isRead && waited < 2 * TURNS_MS; waited += 50) await world.clock.advance(50);
  // While alpha tries to get the bytes, beta gets through.
  await world.run(beta.process?.engine.retry() ?? Promise.reject());
  await world.clock.advance(2 * TURNS_MS);
  expect([isSent, await shown(alpha)]).toEqual([true, { a: "X" }]);
  expect(rows(alpha).unclean()).toEqual([]);
});

test("saved often while offline: a name that is found afterwards is brought up", async () => {
  const { world, alpha, beta, calls, drain, save, shown } = await begin("d/c");
  beta.weather.isOffline = true;
  for (let at = 0; at < 20; at += 1) {
    await save(beta, "a", `new${at}`);
    await world.clock.advance(60_000);
  }
  alpha.crash();
  beta.weather.isOffline = false;
  await drain(beta);
  await world.run(calls(beta).list("d"));
  await world.clock.advance(4 * TURNS_MS);
  await drain(beta);
  expect(await shown(beta)).toEqual({ a: "new19" });
  expect(await shown(beta, "d")).toEqual({ c: "new19" });
});

test("the same bytes written again, and the writer of what came after them dies halfway: it is brought up", async () => {
  const { world, alpha, beta, drain, rules, nodes, idOf, save, shown } = await begin("b");
  await save(alpha, "a", "old");
  await drain(alpha);
  await world.clock.advance(TURNS_MS);
  const a = await idOf("a");
  rules.choose = ({ method, path }) => (isContentWrite({ method, path }) && path.includes(a) ? "failed" : undefined);
  await save(beta, "b", "new");
  for (let waited = 0; !(await nodes()).some(({ contentHash }) => contentHash === hash("new")); waited += 100) {
    if (waited > 30_000) throw new Error("b is never sent");
    await world.clock.advance(100);
  }
  beta.crash();
  rules.choose = () => undefined;
  await world.clock.advance(4 * TURNS_MS);
  await drain(alpha);
  expect(await shown(alpha)).toEqual({ a: "new", b: "new" });
});

test("somebody whose link names no saves has written one name: it is shown, and not replaced", async () => {
  const { world, alpha, beta, drain, nodes, save, shown } = await begin("b");
  await save(alpha, "a", "newer");
  await drain(alpha);
  await shown(beta);
  await world.clock.advance(TURNS_MS);
  const a = (await nodes()).find(({ name }) => name === "a");
  const link = { group: a?.attributes.link?.group ?? "?", hash: hash("theirs") };
  const attributes = { link };
  await world.run(world.outside.writeContent(a?.id ?? "?", sourceOf(bytesOf("theirs", SIZE)), { attributes }));
  await world.clock.advance(4 * TURNS_MS);
  for (const mount of [alpha, beta]) expect(await shown(mount)).toEqual({ a: "theirs", b: "theirs" });
});

test("the mount that brings the names up gets no answer, and something newer comes in: no conflict copies", async () => {
  const { world, alpha, beta, rules, idOf, save, shown } = await begin("b");
  const b = await idOf("b");
  const isFromBeta = (body: unknown) => JSON.stringify(body).includes("copyOf");
  // Of alpha's save only `a` arrives; beta, whose turn it is then, reaches nothing with what it sends.
  rules.choose = ({ method, path, body }) =>
    isContentWrite({ method, path }) && (path.includes(b) || isFromBeta(body)) ? "failed" : undefined;
  await save(alpha, "a", "two");
  await world.clock.advance(10_000);
  expect(await shown(beta)).toEqual({ a: "two", b: "two" });
  await world.clock.advance(TURNS_MS);
  await save(alpha, "b", "three");
  // Of this one only `b`, so far.
  rules.choose = ({ method, path, body }) =>
    isContentWrite({ method, path }) && (!path.includes(b) || isFromBeta(body)) ? "failed" : undefined;
  await world.clock.advance(90_000);
  rules.choose = () => undefined;
  await world.clock.advance(2 * TURNS_MS);
  for (const mount of [alpha, beta]) expect(await shown(mount)).toEqual({ a: "three", b: "three" });
});

test.each([
  ["one", "other"],
  ["other", "one"],
])("%s, then %s, which is written again by another mount, then back: all mounts show that", async (before, after) => {
  const { world, alpha, beta, drain, save, shown } = await begin("b");
  const saveAndTell = async (mount: Mount, label: string) => {
    await save(mount, "a", label);
    await drain(mount);
    await world.clock.advance(5_000);
  };
  await saveAndTell(alpha, before);
  await saveAndTell(alpha, after);
  expect(await shown(beta)).toEqual({ a: after, b: after });
  await saveAndTell(beta, after);
  await saveAndTell(alpha, before);
  await world.clock.advance(6 * TURNS_MS);
  for (const mount of [alpha, beta]) expect(await shown(mount)).toEqual({ a: before, b: before });
});

test("what is put back by one name, at the same time as the other is written, is somewhere in the end", async () => {
  const { world, alpha, beta, drain, rules, idOf, save, shown } = await begin("b");
  await save(alpha, "a", "on");
  await drain(alpha);
  await world.clock.advance(TURNS_MS);
  expect(await shown(beta)).toEqual({ a: "on", b: "on" });
  const [a, b] = [await idOf("a"), await idOf("b")];
  // Of each save the name it was made by arrives first.
  rules.choose = ({ method, path, body }) => {
    const text = JSON.stringify(body ?? "");
    const isOther =
      (text.includes(hash("new")) && path.includes(b)) || (text.includes(hash("old")) && path.includes(a));
    return isContentWrite({ method, path }) && isOther ? "failed" : undefined;
  };
  await save(alpha, "a", "new");
  await save(beta, "b", "old");
  await world.clock.advance(2_000);
  rules.choose = () => undefined;
  await world.clock.advance(4 * TURNS_MS);
  expect(await shown(alpha)).toEqual(await shown(beta));
  expect(Object.values(await shown(alpha))).toEqual(expect.arrayContaining(["new", "old"]));
});

test("a turn has ended and what it sends gets no answer; a mode set then by the writer is not taken back", async () => {
  const { world, alpha, beta, run, calls, labelOf, nodes, rules, idOf, save } = await begin("b");
  const modeOf = async (mount: Mount) => (await world.run(calls(mount).stat("a"))).mode & 0o777;
  const b = await idOf("b");
  const has = (body: unknown, what: string) => JSON.stringify(body ?? "").includes(what);
  const isChange = (method: string, path: string) => isContentWrite({ method, path }) || method === "PATCH";
  // Of alpha's first change only `a` arrives; beta, whose turn it is then, reaches nothing.
  rules.choose = ({ method, path, body }) =>
    isChange(method, path) && (path.includes(b) || has(body, "copyOf")) ? "failed" : undefined;
  await run(alpha, { do: "chmod", path: "a", mode: 0o600 });
  await save(alpha, "a", "two");
  await world.clock.advance(10_000);
  expect([await labelOf(beta, "a"), await modeOf(beta)]).toEqual(["two", 0o600]);
  await world.clock.advance(TURNS_MS);
  // Of the second one only `b` arrives, at first.
  rules.choose = ({ method, path, body }) =>
    isChange(method, path) && (!path.includes(b) || !has(body, hash("three"))) ? "failed" : undefined;
  await run(alpha, { do: "chmod", path: "b", mode: 0o755 });
  await save(alpha, "b", "three");
  await world.clock.advance(20_000);
  alpha.crash();
  await world.clock.advance(90_000);
  rules.choose = () => undefined;
  await world.clock.advance(4 * TURNS_MS);
  expect([await labelOf(beta, "a"), await modeOf(beta)]).toEqual(["three", 0o755]);
  const files = (await nodes()).filter(({ kind }) => kind === "file");
  expect(files.map(({ name, attributes }) => [name, attributes.mode])).toEqual([
    ["a", 0o755],
    ["b", 0o755],
  ]);
});

test("a name is removed at one mount, two saves of the other come in by the one and the other name: no copy is kept", async () => {
  const { world, alpha, beta, run, rules, idOf, save, shown } = await begin("b");
  const a = await idOf("a");
  const isFirst = (body: unknown) => JSON.stringify(body ?? "").includes(hash("two"));
  const isCopy = (body: unknown) => JSON.stringify(body ?? "").includes("copyOf");
  // Of the first save only `b` arrives, of the second only `a`; what alpha sends of the first comes late.
  rules.choose = ({ method, path, body }) =>
    isContentWrite({ method, path }) && (path.includes(a) ? isFirst(body) || isCopy(body) : !isFirst(body))
      ? "failed"
      : undefined;
  await save(beta, "b", "two");
  await world.clock.advance(500);
  await run(alpha, { do: "unlink", path: "b" });
  await world.clock.advance(3_000);
  expect(await shown(alpha)).toEqual({ a: "two" });
  await save(beta, "a", "three");
  await world.clock.advance(20_000);
  beta.weather.isOffline = true;
  rules.choose = () => undefined;
  await world.clock.advance(2 * TURNS_MS);
  expect(await shown(alpha)).toEqual({ a: "three" });
});

test("each of two mounts knows one name only, and both save: each name shows what was saved by it, on both", async () => {
  const { world, alpha, beta, run, calls, drain, save, shown } = await begin("d/c");
  await run(alpha, { do: "mkdir", path: "e" });
  await run(alpha, { do: "rename", path: "a", to: "e/a" });
  await drain(alpha);
  for (const mount of [alpha, beta]) {
    await world.run(mount.stop());
    mount.wipe();
    await world.run(mount.start());
  }
  await world.run(calls(alpha).list("e"));
  await world.run(calls(beta).list("d"));
  await save(alpha, "e/a", "alpha's");
  await save(beta, "d/c", "beta's");
  await world.clock.advance(20_000);
  for (const mount of [alpha, beta]) await drain(mount);
  for (let round = 0; round < 2; round += 1) {
    for (const mount of [alpha, beta]) {
      expect([await shown(mount, "e"), await shown(mount, "d")]).toEqual([{ a: "alpha's" }, { c: "beta's" }]);
    }
    await world.clock.advance(4 * TURNS_MS);
  }
});
