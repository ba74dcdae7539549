/** FILE@V: finds the file and the version. */
import { type Gateway, type Node, RemoteError, type Version } from "../../client/index.ts";
import { MOMENT_EXPECTED, parseMoment } from "../../lib/moment.ts";
import { EXIT, Failure } from "../failure.ts";
import { showTime } from "../table.ts";

/** `back`: this many versions before the newest. `at`: the newest version at that moment, milliseconds since 1970. */
export type Selector = { readonly number: number } | { readonly back: number } | { readonly at: number };

export interface Target {
  readonly node: Node;
  /** Undefined: no version was given. */
  readonly selector: Selector | undefined;
}

/** Throws an Error whose message is the expected form. */
function parseSelector(text: string, nowMs: number): Selector {
  if (/^\d{1,15}$/.test(text)) return { number: Number(text) };
  if (/^-\d{1,15}$/.test(text)) return { back: -Number(text) };
  try {
    return { at: parseMoment(text, nowMs) };
  } catch {
    throw new Error(`a version's number, -1 for the one before the newest, or ${MOMENT_EXPECTED}`);
  }
}

/** The path before the last "@" and the version after it. Undefined when there is no version. */
function splitVersion(path: string): { readonly path: string; readonly version: string } | undefined {
  const [, before, version] = /^(.*[^/])@([^@/]+)$/s.exec(path) ?? [];
  return before === undefined || version === undefined ? undefined : { path: before, version };
}

/** The paths that the given path may stand for. */
export function meantBy(path: string): string[] {
  const split = splitVersion(path);
  return split === undefined ? [path] : [path, split.path];
}

/**
 * A name may contain "@": the longest existing name is taken. `version` is the value of --version; with it the whole
 * path is a name. Rejects with a Failure.
 */
export async function findTarget(gateway: Gateway, path: string, version: string | undefined): Promise<Target> {
  const selectorOf = (text: string) => {
    try {
      return parseSelector(text, Date.now());
    } catch (cause) {
      throw new Failure(`expected as a version ${(cause as Error).message}, got "${text}"`, EXIT.usage, { cause });
    }
  };
  const split = version === undefined ? splitVersion(path) : undefined;
  const given = version === undefined ? undefined : selectorOf(version);
  const whole = await findNode(gateway, path);
  if (whole !== undefined) return { node: whole, selector: given };
  const selector = split === undefined ? undefined : selectorOf(split.version);
  const node = split === undefined ? undefined : await findNode(gateway, split.path);
  if (node !== undefined) return { node, selector };
  throw notThere(split?.path ?? path);
}

/** True if a path is the folder's or lies below it. */
export const isWithin = (path: string, folder: string) =>
  folder === "/" || path === folder || path.startsWith(`${folder}/`);

export function notThere(path: string): Failure {
  return new Failure(`${path} is not there; if it was deleted: wsfs list --deleted, wsfs undelete`);
}

/** Finds a node by its path. Undefined: there is none. */
export function findNode(gateway: Gateway, path: string, at?: Date): Promise<Node | undefined> {
  return unlessMissing(gateway.nodes.byPath(path, { at }));
}

/** Resolves to undefined if there is no such node, or it is deleted. */
export async function unlessMissing(asked: Promise<Node>): Promise<Node | undefined> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof RemoteError && error.code === "notFound") return undefined;
    throw error;
  }
}

export function requireFile(node: Node): void {
  if (node.kind === "file") return;
  throw new Failure(`${node.path} is a folder, and only files have versions; wsfs log shows what changed in it`);
}

const PAGE_SIZE = 1000;
/** `limit`: the largest number of items that are wanted; 0: all. */
export const pageSizeFor = (limit: number) => (limit === 0 ? PAGE_SIZE : Math.min(limit, PAGE_SIZE));

/** The newest version comes first. */
export const versionsOf = (gateway: Gateway, node: Node, limit = 0) =>
  gateway.versions.list(node.id, { branch: "main", orderBy: "-number", pageSize: pageSizeFor(limit) });

/** Rejects with a Failure. */
export async function findVersion(gateway: Gateway, node: Node, selector: Selector): Promise<Version> {
  let count = 0;
  let thinned = 0;
  for await (const page of versionsOf(gateway, node).pages()) {
    thinned = page.thinned ?? 0;
    // The newest version at that moment may have been removed by the policy. Only the gateway knows that.
    if ("at" in selector && thinned > 0) return findKept(gateway, node, await headAt(gateway, node, selector.at));
    const found = page.items.find((version, index) => isFound(selector, version, count + index));
    if (found !== undefined) return found;
    count += page.items.length;
  }
  if ("back" in selector) {
    throw new Failure(`${node.path} has ${count === 1 ? "1 version only" : `only ${count} versions`}`);
  }
  if ("at" in selector) throw isNewer(node, selector.at);
  const orThinned = thinned > 0 ? ", or the workspace's policy has given it up" : "";
  throw new Failure(
    `${node.path} has no version ${selector.number}${orThinned}; wsfs versions lists those that are kept`,
  );
}

function isFound(selector: Selector, { number, createdAt }: Version, before: number): boolean {
  if ("number" in selector) return number === selector.number;
  return "back" in selector ? before === selector.back : Date.parse(createdAt) <= selector.at;
}

function isNewer({ path }: Node, at: number): Failure {
  const moment = showTime(new Date(at).toISOString());
  return new Failure(
    `${path} has no version that old: it was made after ${moment}; wsfs versions lists those that are kept`,
  );
}

async function findKept(gateway: Gateway, node: Node, id: string): Promise<Version> {
  for await (const version of versionsOf(gateway, node)) if (version.id === id) return version;
  throw new Failure(`${node.path}: its version ${id} was given up at this moment`);
}

/** The id of the version that was the newest at a moment, in milliseconds since 1970. Rejects with a Failure. */
async function headAt(gateway: Gateway, node: Node, at: number): Promise<string> {
  const moment = new Date(at).toISOString();
  try {
    const content = await gateway.files.read(node.id, { at: moment });
    await content.cancel();
    return content.version;
  } catch (cause) {
    if (!(cause instanceof RemoteError) || cause.code !== "notFound") throw cause;
    if (cause.status !== 410) throw isNewer(node, at);
    const which = `the version of ${node.path} of ${showTime(moment)}`;
    const how = "the workspace's policy has given it up; wsfs versions lists those that are kept";
    throw new Failure(`${which} is not there: ${how}`, EXIT.failure, { cause });
  }
}
