/** A start: what it leaves behind that does not come about, and what it is told of its workspace when it is under way. */
import { expect, test } from "vitest";
import type { Client } from "../../../src/client/client.ts";
import { RemoteError } from "../../../src/client/errors.ts";
import { ALL_FEATURES, type Features } from "../../../src/contract/features.ts";
import type { Workspace } from "../../../src/contract/resources.ts";
import { SCOPES } from "../../../src/contract/scopes.ts";
import { parseRequest } from "../../../src/engine/core/index.ts";
import { startEngine } from "../../../src/engine/start/index.ts";
import { rowTime } from "../../../src/lib/clocks.ts";
import { EMPTY_HASH } from "../../../src/lib/empty-hash.ts";
import { SILENT } from "../../../src/lib/log.ts";
import { openDatabase } from "../../../src/metadata/database.ts";
import { kernelNodeId } from "../../../src/metadata/ids.ts";
import { createMetadata, ROOT_INODE } from "../../../src/metadata/metadata.ts";
import { born, unborn } from "../../../src/metadata/nodes.ts";
import { PLAIN } from "../../support/features.ts";
import { CALLER, createBytesWorld } from "../support/bytes-world.ts";

test("a state dir that nothing came into belongs to no profile", async () => {
  const { context } = await createBytesWorld();
  const database = openDatabase(":memory:");
  const start = (features: Features) => {
    const client: Client = {
      ...context.client,
      features,
      findWorkspace: async () => {
        throw new RemoteError("forbidden", "no grant");
      },
    };
    const { runtime, paths, settings } = context;
    const rest = { syncRows: async () => {}, workspace: "workspace", scopes: undefined, log: SILENT };
    return startEngine({ runtime, client, paths, database, settings, ...rest });
  };
  await expect(start(ALL_FEATURES)).rejects.toThrow("no grant");
  await expect(start(PLAIN)).rejects.toThrow("no grant");
});

const TIME = "1.000000000";
const EMPTY = { size: 0, originNode: null, originVersion: null, attributes: {}, atime: TIME, ctime: TIME } as const;

interface Counted {
  readonly features?: Features;
  /** As the state dir has it. */
  readonly counting?: string;
}

/** A mount of a workspace it knows, with a file that waits to be sent, while the gateway says nothing of the workspace. */
async function startUntold(scopes?: ReadonlySet<string>, { features = ALL_FEATURES, counting }: Counted = {}) {
  const { context, clock } = await createBytesWorld();
  const database = openDatabase(":memory:");
  const metadata = createMetadata(database, parseRequest);
  metadata.transaction(() => {
    for (const [key, value] of Object.entries({ workspace: "id", workspaceName: "workspace", root: "root" })) {
      metadata.settings.set(key as "workspace", value);
    }
    if (counting !== undefined) metadata.settings.set("counting", counting);
    metadata.inodes.create({ ...EMPTY, kind: "folder", hash: null, content: "clean" });
    const folder = { kind: "folder", size: 0, head: null, contentHash: null, mimeType: null } as const;
    const times = { createdAt: "2026-01-01T00:00:00.000Z", modifiedAt: "2026-01-01T00:00:00.000Z" };
    const place = { id: "root", parentId: null, name: "", path: "/" };
    const root = { ...folder, ...times, ...place, lastKey: null, revision: 1, attributes: {} };
    metadata.nodes.create(born(metadata.createRootEntry(), root));
    const inode = metadata.inodes.create({ ...EMPTY, kind: "file", hash: EMPTY_HASH, content: "dirty" });
    const entry = metadata.entries.create(ROOT_INODE, "file", inode.id);
    metadata.nodes.create(unborn(entry.id, "file", rowTime(1), rowTime(1)));
  });
  let tell = (_: Workspace | undefined) => {};
  const told = new Promise<Workspace | undefined>((resolve) => {
    tell = resolve;
  });
  const sent: string[] = [];
  const client: Client = {
    ...context.client,
    features,
    findWorkspace: () => told,
    // It answers whatever else it is asked.
    upload: async (parent, name) => {
      sent.push(`${parent}/${name}`);
      throw new RemoteError("server", "not now");
    },
  };
  const { runtime, paths, settings } = context;
  const rest = { syncRows: async () => {}, workspace: "workspace", scopes, log: SILENT };
  const starting = startEngine({ runtime, client, paths, database, settings, ...rest });
  starting.catch(() => {});
  await clock.advance(1_000);
  const engine = await starting;
  await clock.advance(5_000);
  /** Lets time go by until it is done. */
  async function during<T>(work: Promise<T>): Promise<T> {
    let isDone = false;
    const done = () => {
      isDone = true;
    };
    work.then(done, done);
    while (!isDone) await clock.advance(100);
    return work;
  }
  return { engine, clock, sent, tell, during };
}

test.each([
  [undefined, ALL_FEATURES],
  ["revisions there, positions there", ALL_FEATURES],
  ["revisions here, positions here", PLAIN],
])("a state dir that says %j goes on with the gateway it had", async (counting, features) => {
  const { engine, during } = await startUntold(undefined, {
    features,
    ...(counting === undefined ? {} : { counting }),
  });
  await during(engine.stop());
});

test.each([
  ["revisions there, positions there", PLAIN, "now revisions here, positions here"],
  // Of a release in which a gateway could count the one and not the other.
  ["revisions here, positions there", PLAIN, "now revisions here, positions here"],
  ["revisions here, positions here", ALL_FEATURES, "now revisions there, positions there"],
])("a state dir that says %j is for no other tier", async (counting, features, now) => {
  const why = `the state dir was used with another profile (${counting}, ${now}): give another --state-dir`;
  await expect(startUntold(undefined, { features, counting })).rejects.toThrow(why);
});

const ITS_OWN = { id: "id", name: "workspace", rootId: "root" };

test("told late that the workspace is what it was, a start sends what waits; nothing before that", async () => {
  const { engine, clock, sent, tell, during } = await startUntold();
  const why = 'the gateway has not said yet whether it has workspace "workspace"';
  expect([sent, engine.status().paused]).toEqual([[], why]);
  tell(ITS_OWN);
  await clock.advance(500);
  expect([sent, engine.status().paused]).toEqual([["root/file"], undefined]);
  await during(engine.stop());
});

test("begun with a token that cannot write, a mount goes on with one that can, and not back with one that cannot", async () => {
  const all = new Set<string>(SCOPES);
  const lesser = new Set<string>(SCOPES.filter((scope) => scope !== "node.node.create"));
  const { engine, clock, sent, tell, during } = await startUntold(lesser);
  tell(ITS_OWN);
  const why = "the token lacks node.node.create";
  const { fileSystem, context } = engine;
  const write = () => during(fileSystem.setattr(CALLER, kernelNodeId(1), { mode: 0o700 }));
  await clock.advance(60_000);
  expect([sent, engine.condition().readOnly]).toEqual([[], why]);
  await expect(write()).rejects.toMatchObject({ code: "EROFS", message: `mounted read-only: ${why}` });
  expect(await during(engine.retry())).toEqual({
    retried: 1,
    unknown: [],
    held: { why: `the mount is read-only: ${why}` },
  });
  context.network.tokenChanged(lesser);
  expect(engine.condition().readOnly).toBe(why);
  context.network.tokenChanged(all);
  await clock.advance(2_000);
  expect([sent.length > 0, engine.condition().readOnly]).toEqual([true, undefined]);
  await write();
  context.network.tokenChanged(lesser);
  await write();
  await during(engine.stop());
});

test.each([
  { told: { ...ITS_OWN, id: "another" }, says: '"workspace" is another workspace now than that of the state dir' },
  { told: undefined, says: 'no workspace "workspace" is visible to this token any more' },
])("told late that it is not the one it was, a mount sends nothing and says why: $says", async ({ told, says }) => {
  const { engine, clock, sent, tell, during } = await startUntold();
  tell(told);
  await clock.advance(1_000);
  expect(await during(engine.retry())).toMatchObject({ retried: 1 });
  await clock.advance(3_600_000);
  expect(sent).toEqual([]);
  expect(engine.status()).toMatchObject({ online: true, dirty: 1, paused: `${says}; mount again` });
  const items = async () => {
    const all = [];
    for await (const some of engine.queue(10)) all.push(...some);
    return all;
  };
  expect(await during(items())).toMatchObject([{ path: "/file", state: "waiting", why: `${says}; mount again` }]);
  await during(engine.stop());
});
