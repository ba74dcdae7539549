/** The simulation itself: an engine broken on purpose does not get through. How many histories it takes is printed. */
import { expect, test } from "vitest";
import type { HttpRequest } from "../../src/contract/http.ts";
import type { Connection } from "../../src/metadata/database.ts";
import { ignoring } from "./support/break-rows.ts";
import { playHistory } from "./support/history.ts";
import type { Sabotage, StartedEngine } from "./support/mount.ts";
import { playHistories } from "./support/run.ts";
import type { Step } from "./support/steps.ts";

const SEED = 1;

/** Several times as many as the slowest of them takes. */
const HISTORIES_MAX = 150;

function withoutHeader(name: string, only: (request: HttpRequest) => boolean = () => true): Sabotage {
  return {
    request(request) {
      if (!only(request)) return request;
      const { [name]: _, ...headers } = request.headers;
      return { ...request, headers };
    },
  };
}

let keys = 0;

/** Each sending of a request has a key of its own. */
function withOtherKey(request: HttpRequest): HttpRequest {
  const { body, query } = request;
  keys += 1;
  const idempotencyKey = `other-${keys}`;
  if (body === undefined) {
    return "idempotencyKey" in query ? { ...request, query: { ...query, idempotencyKey } } : request;
  }
  if (body.kind === "upload") {
    return { ...request, body: { ...body, metadata: { ...(body.metadata as object), idempotencyKey } } };
  }
  const isKeyed = typeof body.value === "object" && body.value !== null && "idempotencyKey" in body.value;
  return isKeyed ? { ...request, body: { ...body, value: { ...body.value, idempotencyKey } } } : request;
}

/** The first half of the bytes, as if they were all. */
function halved(request: HttpRequest): HttpRequest {
  const { body } = request;
  if (body?.kind !== "upload") return request;
  const { content } = body;
  const size = Math.ceil((content.size ?? 0) / 2);
  async function* read(): AsyncGenerator<Uint8Array> {
    let left = size;
    for await (const piece of content.read()) {
      if (left > 0) yield piece.subarray(0, left);
      left -= piece.length;
    }
  }
  const metadata = { ...(body.metadata as object), contentHash: null };
  return { ...request, body: { ...body, metadata, content: { ...content, size, read } } };
}

/**
 * That a file is dirty is said a moment after its bytes changed, if nobody dies before, and that somebody
 * has it open for writing not at all: either would do.
 */
function markedLate({ context }: StartedEngine): void {
  const { inodes, writers } = context.metadata;
  const update = inodes.update.bind(inodes);
  Object.assign(writers, { begin() {} });
  Object.assign(inodes, {
    update(...args: Parameters<typeof update>) {
      const [id, { content = "dirty", hash }] = args;
      if (content !== "dirty" || hash !== null) return update(...args);
      context.runtime.setTimer(1, () => inodes.get(id) !== undefined && update(...args));
      return inodes.get(id);
    },
  });
}

const SABOTAGES: readonly { name: string; mounts: 1 | 2; sabotage: Sabotage }[] = [
  {
    name: "new versions go without If-Match",
    mounts: 2,
    sabotage: withoutHeader("if-match", ({ method }) => method === "PUT"),
  },
  { name: "uploads go without If-None-Match", mounts: 2, sabotage: withoutHeader("if-none-match") },
  { name: "a call is answered before its commit", mounts: 1, sabotage: { losesLastCall: true } },
  { name: "a file is marked dirty late", mounts: 1, sabotage: { started: markedLate } },
  { name: "content is sent before it is whole", mounts: 2, sabotage: { request: halved } },
  {
    name: "what is open goes with its name",
    mounts: 2,
    sabotage: ignoring("INSERT ON overtaken"),
  },
];

test.each(SABOTAGES)("$name: noticed", { timeout: 600_000 }, async ({ name, mounts, sabotage }) => {
  const lag = mounts === 1 ? { lag: { path: 3_000, journal: 5_000, id: 0 } } : {};
  const failure = await playHistories({
    mounts,
    ...lag,
    sabotage,
    seed: SEED,
    count: HISTORIES_MAX,
    shrinkMs: 0,
  });
  console.log(`${name}: history ${failure?.runs}: ${failure?.error.message.split("\n")[0]?.slice(0, 150)}`);
  expect(failure).toBeDefined();
});

/** Both make the folder, so one of them lists it again; what it deleted is still in that late listing. */
const LATE_LISTING: readonly Step[] = [
  { do: "lag", path: 8_000, journal: 5_000, id: 0 },
  {
    do: "race",
    programs: [
      { do: "mkdir", path: "d" },
      { do: "mkdir", path: "d" },
    ],
  },
  { do: "run", mount: 0, program: { do: "save", path: "d/a", size: 20 } },
  { do: "run", mount: 1, program: { do: "save", path: "d/b", size: 20 } },
  { do: "wait", ms: 6_000 },
  { do: "run", mount: 0, program: { do: "unlink", path: "d/a" } },
  { do: "run", mount: 1, program: { do: "unlink", path: "d/b" } },
  { do: "wait", ms: 3_500 },
  { do: "run", mount: 0, program: { do: "list", path: "d" } },
  { do: "run", mount: 1, program: { do: "list", path: "d" } },
];

test("tombstones are forgotten: noticed in a history made for it", async () => {
  const sabotage = ignoring("INSERT ON tombstone");
  await playHistory(LATE_LISTING, { mounts: 2, seed: 1 });
  await expect(playHistory(LATE_LISTING, { mounts: 2, seed: 1, sabotage })).rejects.toThrow(
    "is back after it was deleted",
  );
});

const forgetAttempts = (rows: Connection) => void rows.exec("DELETE FROM attempt");

/** A save is under way, its answer lost, when the file is saved again and the mount dies. */
const SAVED_TWICE: readonly Step[] = [
  { do: "run", mount: 0, program: { do: "save", path: "a", size: 20 } },
  { do: "drain", mount: 0 },
  { do: "run", mount: 0, program: { do: "save", path: "a", size: 30 } },
  { do: "wait", ms: 1_500 },
  { do: "run", mount: 0, program: { do: "save", path: "a", size: 40 } },
  { do: "crash", mount: 0, program: { do: "read", path: "a" }, ticks: 0, ms: 0 },
];

test.each([
  { name: "requests under way are forgotten in a crash", sabotage: { crash: forgetAttempts } },
  { name: "repeated requests have other keys", sabotage: { request: withOtherKey } },
])("$name: noticed in a history made for it", async ({ sabotage }) => {
  const lostAnswer = (): Sabotage => {
    let isLost = false;
    return {
      choose({ method }) {
        if (isLost || method !== "PUT") return "none";
        isLost = true;
        return "silent-after";
      },
    };
  };
  await playHistory(SAVED_TWICE, { mounts: 1, seed: 1, sabotage: lostAnswer() });
  const both = { ...lostAnswer(), ...sabotage };
  await expect(playHistory(SAVED_TWICE, { mounts: 1, seed: 1, sabotage: both })).rejects.toThrow(/conflict/);
});

/** Removed by one who has not heard yet that the other has just saved it. */
const SAVED_UNHEARD: readonly Step[] = [
  { do: "run", mount: 0, program: { do: "save", path: "a", size: 20 } },
  { do: "wait", ms: 4_000 },
  { do: "run", mount: 1, program: { do: "read", path: "a" } },
  { do: "lag", path: 8_000, journal: 5_000, id: 0 },
  { do: "run", mount: 1, program: { do: "save", path: "a", size: 30 } },
  { do: "wait", ms: 1_500 },
  { do: "run", mount: 0, program: { do: "unlink", path: "a" } },
];

test("deletions go without If-Match: noticed in a history made for it", async () => {
  await playHistory(SAVED_UNHEARD, { mounts: 2, seed: 1 });
  const sabotage = withoutHeader("if-match", ({ method }) => method === "DELETE");
  await expect(playHistory(SAVED_UNHEARD, { mounts: 2, seed: 1, sabotage })).rejects.toThrow(
    /deleted a .*never showed/,
  );
});

/** One file of two names, saved by one who is not heard yet; the other removes `names` of it. */
const linkedAndRemoved = (names: readonly string[]): readonly Step[] => [
  { do: "run", mount: 0, program: { do: "save", path: "a", size: 20 } },
  { do: "run", mount: 0, program: { do: "link", path: "a", to: "b" } },
  { do: "wait", ms: 4_000 },
  { do: "run", mount: 1, program: { do: "list", path: "" } },
  { do: "lag", path: 8_000, journal: 5_000, id: 0 },
  { do: "run", mount: 0, program: { do: "save", path: "a", size: 30 } },
  { do: "wait", ms: 1_500 },
  ...names.map((path): Step => ({ do: "run", mount: 1, program: { do: "unlink", path } })),
];

test("one name of a linked file goes with a version nobody there has seen, the last one does not: noticed", async () => {
  const sabotage = withoutHeader("if-match", ({ method }) => method === "DELETE");
  const options = { mounts: 2, seed: 1 } as const;
  await playHistory(linkedAndRemoved(["b"]), options);
  await playHistory(linkedAndRemoved(["b"]), { ...options, sabotage });
  await playHistory(linkedAndRemoved(["a", "b"]), options);
  await expect(playHistory(linkedAndRemoved(["a", "b"]), { ...options, sabotage })).rejects.toThrow(/never showed/);
});
