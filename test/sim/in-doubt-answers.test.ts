/**
 * Requests in doubt: others change the node after a write of this mount was carried out, and before its answer is here. The
 * answer shows the node as it was then, and does not undo what they did.
 */
import { expect, test } from "vitest";
import { ALL_FEATURES, SETTLE_MS } from "../../src/contract/features.ts";
import type { HttpRequest } from "../../src/contract/http.ts";
import { PLAIN } from "../support/features.ts";
import { begin, there } from "./support/one-world.ts";
import type { Fault } from "./support/transport.ts";
import { differences, TAG, treeOf } from "./support/tree.ts";

const TIERS = [
  { tier: "full", features: ALL_FEATURES, pollMs: 150 },
  { tier: "plain", features: PLAIN, pollMs: 2_000 },
];

const HOW: readonly { readonly how: string; readonly fault: Fault; readonly dies: boolean }[] = [
  { how: "it is long on its way", fault: "slow-body", dies: false },
  { how: "there was none, and it is sent again", fault: "silent-after", dies: false },
  { how: "the mount died, and sends it again", fault: "silent-after", dies: true },
];

/** Undone, the node is again as the mount last knew it. */
const DONE = [
  { method: "PUT", theirs: "adds to it" },
  { method: "PATCH", theirs: "adds to it" },
  { method: "PATCH", theirs: "undoes it" },
] as const;

const CASES = TIERS.flatMap((tier) => HOW.flatMap((how) => DONE.map((done) => ({ ...tier, ...how, ...done }))));

test.each(CASES)("$tier, $method: somebody $theirs before the answer, $how", async (given) => {
  const { features, pollMs, method, theirs, fault, dies } = given;
  // What comes by the journal waits no longer than this for an answer that is on its way.
  const it = await begin({}, { features, settings: { pollMs } });
  const { world, calls } = it;
  const { outside, workspace, clock } = world;
  await it.save("a");
  await it.drain();
  it.once(fault, (request: HttpRequest) => request.method === method);
  if (method === "PUT") await it.save("a", "new");
  else await world.run(calls().chmod("a", 0o600));
  const before = it.asked.length;
  for (let waited = 0; it.asked.length === before && waited < 5_000; waited += 10) await clock.advance(10);
  expect(it.asked.slice(before)).toEqual([expect.stringMatching(`^${method} .* 200$`)]);
  const [node] = (await world.run(outside.listFolder(workspace.root))).items;
  const attributes = theirs === "undoes it" ? { mode: 0o644 } : { xattrs: { [TAG]: "dGhlaXJz" } };
  await world.run(outside.patchNode(node?.id ?? "", { attributes }));
  await clock.advance(200);
  if (dies) await it.again("crash");
  // The answer has come, or does not: thousands of looks at the journal would show no more than a hundred.
  Object.assign(it.mount.settings, { pollMs: 5_000 });
  await clock.advance(2 * SETTLE_MS);
  await it.drain();
  const shown = await world.run(treeOf(calls(), { withContent: true }));
  expect(differences(shown, await there(world), ["the mount", "the gateway"])).toEqual([]);
  // Without a key nothing tells that it was done once: a plain gateway shows the node as it was before, and it is done.
  const isDoneAgain = !features.isFull && fault === "silent-after";
  const undone = { tag: "", mode: isDoneAgain ? 0o600 : 0o644 };
  const both = { tag: "theirs", mode: method === "PATCH" ? 0o600 : 0o644 };
  expect(shown.get("a")).toMatchObject(theirs === "undoes it" ? undone : both);
});
