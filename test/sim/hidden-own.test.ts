/**
 * A request of ours is carried out and nobody says so, and before it is heard of somebody else
 * changes the same node: what the gateway shows bears his key. Ours is told from his all the same.
 */
import { expect, test } from "vitest";
import type { HttpRequest } from "../../src/contract/http.ts";
import { movedLate } from "./support/late-move.ts";
import { begin, there } from "./support/one-world.ts";
import { bytesOf } from "./support/programs.ts";

const isBirth = ({ method, path }: HttpRequest) =>
  method === "POST" && (path === "/v1/nodes" || path.startsWith("/v1/files/"));
const bytes = (text: string) => ({
  size: text.length,
  async *read() {
    yield Buffer.from(text);
  },
});

test("a move that was refused and is carried out late, changed by somebody at once: it does not come back", async () => {
  const { it, node } = await movedLate();
  const { outside, clock } = it.world;
  await it.world.run(outside.patchNode(node?.id ?? "", { attributes: { mode: 0o640 } }));
  await clock.advance(20_000);
  expect(await it.names()).toEqual(["c"]);
  it.rules.choose = () => undefined;
  await it.ends(["c"]);
  expect([...(await there(it.world)).values()][0]).toMatchObject({ mode: 0o640 });
});

/** Whose answer is lost is asked for again after ten seconds; the journal tells sooner. */
const HEARD_MS = 3_000;

/** `a` is saved, the answer to its birth is lost, and somebody calls it `e`: its node. */
async function savedAndRenamed(it: Awaited<ReturnType<typeof begin>>): Promise<string> {
  const { outside, workspace } = it.world;
  await it.drain();
  const birth = it.once("silent-after", isBirth);
  await it.save("a");
  await it.until(birth.isSent);
  const [node] = (await it.world.run(outside.listFolder(workspace.root))).items;
  if (node === undefined) throw new Error("nothing was born");
  await it.world.run(outside.patchNode(node.id, { name: "e" }));
  return node.id;
}

test("a file born without an answer, moved and written by somebody: it is the one file", async () => {
  const it = await begin(true);
  const { outside, clock } = it.world;
  const node = await savedAndRenamed(it);
  await it.world.run(outside.writeContent(node, bytes("theirs")));
  for (let waited = 0; waited < 30_000; waited += HEARD_MS) {
    await clock.advance(HEARD_MS);
    expect(["a", "e"]).toEqual(expect.arrayContaining(await it.names()));
    expect((await it.names()).length).toBe(1);
  }
  await it.ends(["e"]);
  expect(await it.content("e")).toBe("theirs");
});

test("without a journal, a file born without an answer, renamed by somebody and removed here: his name stays", async () => {
  const it = await begin(true, {}, { lacks: ["journal"] });
  const { clock } = it.world;
  await savedAndRenamed(it);
  await clock.advance(HEARD_MS);
  expect(await it.names()).toEqual(["a", "e"]);
  await it.unlink("a");
  await it.ends(["e"]);
});

test("a save that was given up for a newer one and had arrived, changed by somebody: no conflict with oneself", async () => {
  const it = await begin(true);
  const { outside, workspace, clock } = it.world;
  await it.save("a");
  await it.drain();
  // The journal, which would tell whose it is, is later than the refusal.
  it.world.setLag({ path: 0, journal: 30_000, id: 0 });
  const sending = it.once("silent-after", ({ method, path }) => method === "PUT" && path.endsWith("/content"));
  await it.save("a", "second");
  await it.until(sending.isSent);
  const [node] = (await it.world.run(outside.listFolder(workspace.root))).items;
  await it.world.run(outside.patchNode(node?.id ?? "", { attributes: { mode: 0o600 } }));
  await it.save("a", "third");
  await clock.advance(20_000);
  expect(await it.names()).toEqual(["a"]);
  await it.ends(["a"]);
  expect(await it.content("a")).toBe(bytesOf("third", 40).toString("latin1"));
  expect((await there(it.world)).get("a")).toMatchObject({ mode: 0o600 });
});

test.each([
  ["under his own key", "his"],
  ["without a key", undefined],
])(
  "a save that was given up for a newer one and never arrived, the same bytes written by somebody %s: both stay",
  async (_, idempotencyKey) => {
    const it = await begin(true);
    const { outside, workspace, clock } = it.world;
    await it.save("a");
    await it.drain();
    it.world.setLag({ path: 0, journal: 30_000, id: 0 });
    const sending = it.once("silent-before", ({ method, path }) => method === "PUT" && path.endsWith("/content"));
    await it.save("a", "second");
    await it.until(sending.isSent);
    const [node] = (await it.world.run(outside.listFolder(workspace.root))).items;
    const second = bytesOf("second", 40).toString("latin1");
    await it.world.run(outside.writeContent(node?.id ?? "", bytes(second), { idempotencyKey }));
    await it.save("a", "third");
    await clock.advance(20_000);
    await it.drain();
    const names = await it.names();
    expect(names.length).toBe(2);
    expect([...(await there(it.world)).keys()]).toEqual(names);
    const contents = await Promise.all(names.map((name) => it.content(name)));
    expect(contents.sort()).toEqual([second, bytesOf("third", 40).toString("latin1")].sort());
  },
);

test("a folder born without an answer, moved by somebody, with something in it: it is the one folder", async () => {
  const it = await begin(true);
  const { outside, workspace, clock } = it.world;
  await it.drain();
  const birth = it.once("silent-after", isBirth);
  await it.world.run(it.calls().mkdir("d"));
  await it.save("d/own");
  await it.until(birth.isSent);
  const [node] = (await it.world.run(outside.listFolder(workspace.root))).items;
  await it.world.run(outside.patchNode(node?.id ?? "", { name: "e" }));
  await it.world.run(outside.upload(node?.id ?? "", "x", bytes("theirs")));
  for (let waited = 0; waited < 30_000; waited += HEARD_MS) {
    await clock.advance(HEARD_MS);
    expect((await it.names()).length).toBe(1);
  }
  await it.ends(["e", "e/own", "e/x"]);
  expect(await it.content("e/own")).toBe(bytesOf("d/own", 40).toString("latin1"));
});

/** Asked again, the gateway does not look whether it has done that already: it is not allowed. */
function refuseAfterBirth(it: Awaited<ReturnType<typeof begin>>): void {
  const birth = it.once("lost-after", isBirth);
  const { choose } = it.rules;
  it.rules.choose = (request) => {
    if (birth.isSent()) it.mount.weather.refusal = 403;
    return choose(request);
  };
}

async function isRefused(it: Awaited<ReturnType<typeof begin>>): Promise<void> {
  await it.until(() => it.world.lines.some((line) => /POST .* 403$/.test(line)));
  Object.assign(it.rules, { choose: () => undefined });
  it.mount.weather.refusal = undefined;
}

test("a file born without an answer, then refused, then removed here: it goes, and stays away", async () => {
  const it = await begin(true);
  await it.drain();
  refuseAfterBirth(it);
  await it.save("a");
  await isRefused(it);
  await it.unlink("a");
  await it.ends([]);
});

test("a file born without an answer, then refused, then written again: it is one file, without a conflict", async () => {
  const it = await begin(true);
  await it.drain();
  refuseAfterBirth(it);
  await it.save("a");
  await isRefused(it);
  await it.save("a", "second");
  await it.ends(["a"]);
  expect(await it.content("a")).toBe(bytesOf("second", 40).toString("latin1"));
});

test("a folder whose making was refused when it was asked for again: what others have put into it since is seen", async () => {
  const it = await begin(true);
  const { outside, workspace } = it.world;
  it.world.setLag({ path: 0, journal: 0, id: 9_000 });
  let births = 0;
  it.rules.choose = (request) => {
    if (!isBirth(request)) return undefined;
    births += 1;
    return "lost-after";
  };
  await it.world.run(it.calls().mkdir("d"));
  await it.until(() => births > 0);
  it.rules.choose = () => undefined;
  it.mount.weather.refusal = 403;
  const [made] = (await it.world.run(outside.listFolder(workspace.root))).items;
  await it.world.run(outside.createFolder(made?.id ?? "", "others"));
  await it.world.clock.advance(12_000);
  it.mount.weather.refusal = undefined;
  await it.world.run(it.mount.process?.engine.retry() ?? Promise.reject());
  await it.ends(["d", "d/others"]);
});
