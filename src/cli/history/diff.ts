/** `wsfs diff FILE[@V] [FILE[@W]]`: compares two versions, line by line when they are text. */
import type { Gateway, Node, Version } from "../../client/index.ts";
import { EXIT, Failure } from "../failure.ts";
import type { Values } from "../options.ts";
import { print } from "../service.ts";
import { table, terminalWidth } from "../table.ts";
import { showInPager } from "./pager.ts";
import { noteUnsent } from "./settle.ts";
import { findTarget, findVersion, requireFile, type Selector, type Target } from "./target.ts";
import { describeVersion } from "./versions.ts";
import { atWorkspace, requireHistory } from "./workspace.ts";

const OPERATIONS = ["getNodeByPath", "listVersions", "getContent"] as const;
/** Larger versions are compared as a whole. */
const TEXT_BYTES_MAX = 16 * 1024 * 1024;
/** The limit of a comparison. With few lines in common it would take too long. */
const COMPARE_LIMIT_MS = 20_000;
const NEWEST: Selector = { back: 0 };
const BEFORE_NEWEST: Selector = { back: 1 };

export function diff(values: Values<"diff">): Promise<number> {
  const { OTHER } = values.optional;
  const words = [values.positionals.FILE, ...(OTHER === undefined ? [] : [OTHER])];
  return atWorkspace(values, words, OPERATIONS, async ({ gateway, mount, paths }) => {
    await requireHistory(gateway);
    const targets = await Promise.all(paths.map((path) => findTarget(gateway, path, undefined)));
    const [first, second] = targets;
    if (first === undefined) throw new Failure("diff needs FILE", EXIT.usage);
    for (const { node } of targets) requireFile(node);
    await noteUnsent(mount);
    const [old, current] = await Promise.all([
      sideOf(gateway, first, second === undefined ? BEFORE_NEWEST : NEWEST),
      sideOf(gateway, second ?? { node: first.node, selector: undefined }, NEWEST),
    ]);
    return show(gateway, old, current, values.json);
  });
}

interface Side {
  readonly node: Node;
  readonly version: Version;
}

async function sideOf(gateway: Gateway, { node, selector }: Target, otherwise: Selector): Promise<Side> {
  return { node, version: await findVersion(gateway, node, selector ?? otherwise) };
}

async function show(gateway: Gateway, old: Side, current: Side, json: boolean): Promise<number> {
  const isSame = await haveSameBytes(gateway, old.version, current.version);
  const patch = isSame ? undefined : await compareLines(gateway, old, current);
  if (json) {
    return print(json, { old: old.version, new: current.version, isSame, isText: patch !== undefined, patch }, "");
  }
  if (isSame) return print(json, {}, `${nameOf(old)} and ${nameOf(current)} have the same content.\n`);
  await showInPager(patch ?? describeBoth(old, current));
  return EXIT.ok;
}

const nameOf = ({ node, version }: Side) => `${node.path}@${version.number}`;

async function haveSameBytes(gateway: Gateway, old: Version, current: Version): Promise<boolean> {
  if (old.id === current.id) return true;
  if (old.size !== current.size) return false;
  if (old.contentHash !== null && current.contentHash !== null) return old.contentHash === current.contentHash;
  if (old.size > TEXT_BYTES_MAX) return false;
  const [a, b] = await Promise.all([old, current].map((version) => bytesOf(gateway, version)));
  return a !== undefined && b !== undefined && a.equals(b);
}

async function bytesOf(gateway: Gateway, { nodeId, id, contentHash }: Version): Promise<Buffer> {
  const content = await gateway.files.read(nodeId, { version: id, contentHash: contentHash ?? undefined });
  return content.buffer();
}

/** Undefined: one side is no text or is too large, or the comparison took too long. */
async function compareLines(gateway: Gateway, old: Side, current: Side): Promise<string | undefined> {
  if (old.version.size > TEXT_BYTES_MAX || current.version.size > TEXT_BYTES_MAX) return undefined;
  const [a, b] = await Promise.all([old, current].map(async ({ version }) => textOf(await bytesOf(gateway, version))));
  if (a === undefined || b === undefined) return undefined;
  const { createTwoFilesPatch } = await import("diff");
  const headers = [old, current].map(({ version }) => describeVersion(version).filter(Boolean).join(", "));
  return createTwoFilesPatch(nameOf(old), nameOf(current), a, b, headers[0], headers[1], {
    timeout: COMPARE_LIMIT_MS,
  })?.replace(/^=+\n/, "");
}

function textOf(bytes: Buffer): string | undefined {
  if (bytes.includes(0)) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

function describeBoth(old: Side, current: Side): string {
  const row = (side: Side) => [nameOf(side), ...describeVersion(side.version), side.version.contentHash ?? ""];
  const heads = ["FILE", "SAVED", "SIZE", "BY", "FROM", "SHA-256"];
  return `The contents differ, and are no text that can be compared line by line.\n${table(heads, [row(old), row(current)], terminalWidth())}`;
}
