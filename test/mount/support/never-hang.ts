/**
 * Every call of the table, and the commands, on a mount in each kind of trouble: the longest time each took.
 * The limits are the product's (daemon/waiting.ts), divided by `divisor`.
 */
import { mkdtempSync, rmdirSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { heartbeatLimitSeconds, requestLimitMs, silenceLimits } from "../../../src/daemon/waiting.ts";
import { run } from "../../support/child.ts";
import type { OrdinaryUser } from "../../support/ordinary-user.ts";
import { check, mountsBelow, type Place, type TestGateway, type TestMount } from "../../support/wsfs.ts";
import { CALLS, learn, type Needs, type Outcome, prepare, runCalls } from "./never-hang-calls.ts";
import { type Trouble, wayTo } from "./troubled-way.ts";

export const TROUBLES = {
  frozen: "the gateway accepts, and never answers",
  dead: "the gateway refuses connections",
  slow: "the gateway's answers begin, and go on by a byte a second",
  full: "the disk of the state dir is full",
  stopped: "the daemon is stopped (SIGSTOP)",
} as const;
export type TroubleName = keyof typeof TROUBLES;

/** The folder of those that a signal ends. */
const INTERRUPTED = "interrupted";

/** Well before the gateway's silence is at its limit. */
const INTERRUPTED_MS = 5_000;

/** For a machine that is busy with other things. */
const SLACK_MS = 8_000;
/** A call may meet an answer that began just before the trouble did. */
const MARGIN = 1.1;

/** How long a call may take. */
export function limitOf(trouble: TroubleName, needs: Needs, divisor: number): number {
  const { metadata = 0, content = 0 } = silenceLimits(divisor);
  // A silent download is found out by the first who reads; the kernel asks twice for a page it did not get.
  const offline = { metadata: 1_000, content: 3_000 };
  const waits = {
    frozen: { metadata, content: content + offline.content },
    // Refused at once; a download is tried four times.
    dead: offline,
    // Metadata that drips is silence; content that drips is not, and the whole request has its limit.
    slow: { metadata, content: 2 * requestLimitMs(divisor) },
    full: { metadata: 0, content: 0 },
    // Then the supervisor ends it, or starts another.
    stopped: { metadata: 0, content: 0 },
  }[trouble];
  const heartbeat = trouble === "stopped" ? heartbeatLimitSeconds(divisor) * 1000 : 0;
  return (needs === "local" ? 0 : waits[needs]) * MARGIN + heartbeat + SLACK_MS;
}

export interface Row extends Outcome {
  readonly trouble: TroubleName;
  readonly limitMs: number;
}

export interface Workspace {
  readonly gateway: TestGateway;
  /** Who mounts it; absent: we do, as root. */
  readonly user?: OrdinaryUser;
}

/** A workspace with what the calls work on, at a gateway of its own. */
export async function makeWorkspace(place: Place, user?: OrdinaryUser): Promise<Workspace> {
  const gateway = await place.gateway();
  const writer = await place.mount(gateway, { name: "writer" });
  await prepare(place, writer.dir, [...Object.keys(TROUBLES), INTERRUPTED]);
  await writer.umount("--drain=120");
  return { gateway, ...(user === undefined ? {} : { user }) };
}

/** A mount that knows its part of the workspace; then the trouble comes. `use` does the rest; all is taken off after it. */
async function inTrouble(
  place: Place,
  { gateway, user }: Workspace,
  options: { trouble: TroubleName; name?: string; args: readonly string[]; learns?: boolean },
  use: (mount: TestMount, folder: string) => Promise<void>,
): Promise<void> {
  const { trouble, name = trouble, learns = true } = options;
  // Some calls are about folders that nobody has looked into.
  const args = [...options.args, "--names-ahead=0"];
  const way = await wayTo(gateway);
  const disk = trouble === "full" ? await smallDisk(place.path(`${name}.state`), user) : undefined;
  try {
    const mount = await place.mount({ ...gateway, baseUrl: way.baseUrl }, { name, args });
    const folder = join(mount.dir, name);
    if (learns) await learn(place, folder);
    if (trouble === "full") check(await place.sh(`! head -c 1G /dev/zero > '${mount.stateDir}/filler'`));
    else if (trouble === "stopped") process.kill(mount.pid, "SIGSTOP");
    else await way.become(trouble satisfies Trouble);
    await use(mount, folder);
  } finally {
    // What is left of it ends with the test's place.
    if (mountsBelow(place.folder, user).some(({ mountpoint }) => mountpoint === place.path(name))) {
      await place.wsfs(["umount", place.path(name)], { timeoutMs: 60_000 });
    }
    await way.end();
    await disk?.();
  }
}

/** At `path`, and what takes it off again. */
async function smallDisk(path: string, user: OrdinaryUser | undefined): Promise<() => Promise<void>> {
  const folder = mkdtempSync(join(tmpdir(), "wsfs-disk-"));
  symlinkSync(folder, path);
  // Where the user's mounts are.
  const as = (program: string, args: readonly string[]) =>
    user === undefined ? run(program, args) : run(...user.asRoot("/", program, args));
  const owner = user === undefined ? "" : `,uid=${user.uid},gid=${user.uid}`;
  check(await as("mount", ["-t", "tmpfs", "-o", `size=24M,mode=700${owner}`, "tmpfs", folder]));
  return async () => {
    await as("umount", ["-l", folder]);
    rmdirSync(folder);
  };
}

/** How long each call took, with a `wsfs status` beside them, and `wsfs umount` after them. */
export async function runTrouble(
  place: Place,
  workspace: Workspace,
  trouble: TroubleName,
  divisor: number,
): Promise<Row[]> {
  const rows: Row[] = [];
  const command = async (name: string, dir: string) => {
    const start = performance.now();
    const { code } = await place.wsfs([name, dir], { timeoutMs: 120_000 });
    const milliseconds = Math.round(performance.now() - start);
    const limitMs = limitOf(trouble, "local", divisor) + COMMAND_MS;
    const said = code === null ? "late" : code === 0 ? "ok" : `exit code ${code}`;
    rows.push({ call: `wsfs ${name}`, milliseconds, said, trouble, limitMs });
  };
  const args = ["--shorten-waits", String(divisor)];
  await inTrouble(place, workspace, { trouble, args }, async (mount, folder) => {
    const limits = Object.entries(CALLS).map(([call, { needs }]) => [call, limitOf(trouble, needs, divisor)] as const);
    const longest = Math.max(...limits.map(([, limit]) => limit));
    const calls = runCalls(place, folder, Object.keys(CALLS), { limitMs: longest });
    const [outcomes] = await Promise.all([calls, command("status", mount.dir)]);
    const limitsByCall = new Map(limits);
    rows.push(...outcomes.map((outcome) => ({ ...outcome, trouble, limitMs: limitsByCall.get(outcome.call) ?? 0 })));
    // The calls have outlived the stop.
    if (trouble !== "stopped") await command("umount", mount.dir);
  });
  if (trouble === "stopped") {
    await inTrouble(place, workspace, { trouble, args, learns: false }, ({ dir }) => command("umount", dir));
  }
  return rows;
}

/** Over its limit, or never back. */
export function isLate({ milliseconds, limitMs, said }: Row): boolean {
  return milliseconds > limitMs || /^(late|stuck|died)$/.test(said);
}

/** To start a command; and what was written last is taken in before a daemon ends. */
const COMMAND_MS = 10_000;

/** Calls that wait: for the gateway, by what the calls need of it or because close and fsync wait for it. */
export const WAITING = [
  "ls an unknown folder",
  "stat in an unknown folder",
  "open, read, close: not cached",
  "read by mmap: not cached",
  "create, write, close",
  "create in an unknown folder",
  "write, fsync",
  "append to a cached file",
  "rmdir of an unknown folder",
] as const satisfies readonly (keyof typeof CALLS)[];

export const UMOUNT = "umount(8)";

/** Each waits, is interrupted, and comes back at once; then umount(8), or what a user has in its place. */
export async function interruptAll(place: Place, workspace: Workspace): Promise<Outcome[]> {
  let outcomes: Outcome[] = [];
  const options = { trouble: "frozen", name: INTERRUPTED, args: ["--durability", "remote"] } as const;
  await inTrouble(place, workspace, options, async ({ dir }, folder) => {
    outcomes = await runCalls(place, folder, WAITING, { limitMs: INTERRUPTED_MS, interruptMs: 1_000 });
    const start = performance.now();
    const umount = workspace.user === undefined ? "umount" : "fusermount3 -u";
    const { code } = await place.sh(`cd / && ${umount} '${dir}'`, { timeoutMs: SLACK_MS });
    const milliseconds = Math.round(performance.now() - start);
    outcomes.push({ call: UMOUNT, milliseconds, said: code === 0 ? "ok" : `exit code ${code}` });
  });
  return outcomes;
}

/** One line. */
export function describeLongest(rows: readonly Row[]): string {
  const [longest] = [...rows].sort((a, b) => b.milliseconds - a.milliseconds);
  if (longest === undefined) return "no call";
  const { trouble, call, milliseconds, limitMs, said } = longest;
  return `longest of ${rows.length} calls: ${milliseconds} ms, limit ${Math.round(limitMs)} ms (${trouble}, ${call}: ${said})`;
}

/** Lines of a table in Markdown, a row for each call. */
export function describeRows(rows: readonly Row[]): string[] {
  const troubles = [...new Set(rows.map(({ trouble }) => trouble))];
  const calls = [...new Set(rows.map(({ call }) => call))];
  const cell = (call: string, trouble: TroubleName) => {
    const row = rows.find((other) => other.call === call && other.trouble === trouble);
    return row === undefined ? "" : `${(row.milliseconds / 1000).toFixed(1)} s ${row.said}`;
  };
  return [
    `| call | ${troubles.join(" | ")} |`,
    `|---|${troubles.map(() => "---").join("|")}|`,
    ...calls.map((call) => `| ${call} | ${troubles.map((trouble) => cell(call, trouble)).join(" | ")} |`),
  ];
}
