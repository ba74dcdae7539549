/** Histories of a small tree in a gateway's core, and what the tree was at each moment of them. */
import fc from "fast-check";
import { type Node, nodePage, type RestoredItem, restoredSlice } from "../../../src/contract/resources.ts";
import type { TestCore } from "../../support/gateway-core.ts";

/** What is done, to which of the nodes that are there: numbers that any history gives a meaning. */
export type Step = readonly [what: number, which: number, other: number];

export const histories = (longest: number) =>
  fc.array(fc.tuple(fc.nat(99), fc.nat(99), fc.nat(99)), { minLength: 1, maxLength: longest });

const NAMES = ["a", "b.txt", "c"] as const;

/** What is refused is none. Each has a moment of its own. */
export async function act(core: TestCore, [what, which, other]: Step): Promise<void> {
  await core.clock.advance(1000);
  const nodes = await tree(core, core.workspace.root);
  const folders = [core.workspace.root, ...nodes.flatMap(({ id, kind }) => (kind === "folder" ? [id] : []))];
  const pick = <T>(of: readonly T[], number: number) => of[number % of.length];
  const one = pick(nodes, which);
  const folder = pick(folders, other);
  const name = pick(NAMES, which + other);
  const parentId = folder;
  const post = (path: string, json: object) => core.call("POST", path, { json });
  const steps = [
    () => post("/v1/nodes", { parentId, name, kind: "folder" }),
    () => core.upload(`/v1/files/${name}`, `${which} ${other}`, { query: { parentId: String(folder) } }),
    () =>
      one &&
      core.upload(`/v1/nodes/${one.id}/content`, `${which}`, {
        method: "PUT",
        metadata: { attributes: { mtime: `${which}.000000000` } },
      }),
    () => one && core.call("PATCH", `/v1/nodes/${one.id}`, { json: { parentId, name } }),
    () => one && core.call("PATCH", `/v1/nodes/${one.id}`, { json: { parentId } }),
    () => one && core.call("PATCH", `/v1/nodes/${one.id}`, { json: { attributes: { mode: other } } }),
    () => one && post(`/v1/nodes/${one.id}/exchange`, { with: pick(nodes, other)?.id }),
    () => one && removeAll(core, one.id),
    async () => {
      const { json } = await core.call("GET", "/v1/nodes", {
        query: { path: "/", deleted: "true", recursive: "true" },
      });
      const gone = pick(nodePage.parse(json).items, which);
      return gone && post(`/v1/nodes/${gone.id}/restore`, {});
    },
  ];
  const answer = await steps[what % steps.length]?.();
  if (answer !== undefined && ![200, 201, 400, 404, 409].includes(answer.status)) {
    throw new Error(`${JSON.stringify([what, which, other])}: ${answer.status} ${answer.bytes}`);
  }
}

/** A node with all below it, as `rm -r` does. */
export async function removeAll(core: TestCore, id: string) {
  for (const node of [...(await tree(core, id))].reverse()) await core.call("DELETE", `/v1/nodes/${node.id}`);
  return core.call("DELETE", `/v1/nodes/${id}`);
}

/** All nodes below a folder, a folder before what is in it; of a file none. */
export async function tree(core: TestCore, parentId: string): Promise<readonly Node[]> {
  const query = { parentId, recursive: "true", orderBy: "path", pageSize: "1000" };
  const { status, json } = await core.call("GET", "/v1/nodes", { query });
  return status === 200 ? nodePage.parse(json).items : [];
}

/** What a tree is: nodes by their path below the folder, with bytes, mode and time. */
export async function shapeOf(core: TestCore, folder: string): Promise<Readonly<Record<string, unknown>>> {
  const nodes = await tree(core, folder);
  const { path } = await core.node(folder);
  return Object.fromEntries(
    nodes.map((node) => [node.path.slice(path === "/" ? 0 : path.length), [node.id, ...lookOf(node)]]),
  );
}

export function lookOf({ kind, contentHash, attributes, modifiedAt }: Node): readonly unknown[] {
  const mtime = kind === "folder" ? undefined : Number(attributes.mtime ?? Date.parse(modifiedAt) / 1000);
  return [kind, contentHash, attributes.mode, mtime];
}

export const momentOf = ({ clock }: TestCore) => new Date(clock.wallClock()).toISOString();

export interface Restore {
  readonly at: string;
  readonly exact?: boolean;
  readonly plan?: boolean;
  readonly pageSize?: number;
}

/** Asks until it is done, each time so often as `tries` says; `between`: after each answer. */
export async function restoreTree(
  core: TestCore,
  id: string,
  wanted: Restore,
  { tries = 1, between }: { readonly tries?: number; readonly between?: () => Promise<void> } = {},
): Promise<readonly RestoredItem[]> {
  const items: RestoredItem[] = [];
  for (let after: string | null = ""; after !== null; ) {
    let next: string | null = null;
    for (let tried = 0; tried < tries; tried += 1) {
      const json = { ...wanted, after };
      const answer = await core.call("POST", `/v1/nodes/${id}/restore-tree`, { json });
      if (answer.status !== 200) throw new Error(`${answer.status} ${answer.bytes}`);
      const slice = restoredSlice.parse(answer.json);
      items.push(...slice.items);
      next = slice.next;
    }
    await between?.();
    after = next;
  }
  return items;
}
