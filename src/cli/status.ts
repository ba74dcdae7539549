/** `wsfs status`: shows the state of a mount, as its daemon reports it. */
import { dirname } from "node:path";
import type { MountStatus } from "../daemon/control-messages.ts";
import { readGatewayRecord } from "../daemon/gateway-record.ts";
import { type MountEntry, mountsOf, readMountTable } from "../daemon/mount-table.ts";
import { type FileWriter, writersOf } from "../daemon/processes.ts";
import { userFolders } from "./environment.ts";
import { EXIT } from "./failure.ts";
import { findServed, type Served, whyUnserved } from "./find-mount.ts";
import { findPlace } from "./mountpoint.ts";
import type { Values } from "./options.ts";
import { showTime } from "./table.ts";
import { describeAllUnsent, formatCount, formatDuration, formatSize, printable } from "./wording.ts";

export async function status(values: Values<"status">): Promise<number> {
  const found = await findServed(values.dir);
  if (found === undefined) return ofNoMount(values);
  if (found.served === undefined) {
    const why = await whyUnserved(values.dir, found.mount);
    process.stdout.write(values.json ? `${JSON.stringify({ mounted: false })}\n` : `${values.dir}: ${why}\n`);
    return EXIT.notMounted;
  }
  const [{ ask }, { getStatus }] = await Promise.all([import("./ask.ts"), import("../daemon/control-client.ts")]);
  const asked = await ask(found.served, getStatus);
  const state = { ...asked, baseUrl: addressNow(found.served) ?? asked.baseUrl };
  const detached = withPrograms(state, found.mount);
  const all = { mounted: true, ...state, ...(detached.length === 0 ? {} : { overtaken: detached }) };
  process.stdout.write(values.json ? `${JSON.stringify(all)}\n` : describeStatus(state, detached));
  return EXIT.ok;
}

/** Nothing is mounted, but the last mount may have left unsent changes. */
async function ofNoMount({ dir, json }: Values<"status">): Promise<number> {
  const { findUnsent } = await import("../daemon/find-unsent.ts");
  const left = findUnsent(userFolders().state, findPlace(dir, readMountTable()).path);
  const lines = left.map(
    ({ workspace, path, stateDir, ...unsent }) =>
      `; left to upload with the next mount of "${workspace}"${path === undefined ? "" : ` with --path ${path}`}: ${describeAllUnsent(unsent)}, in ${stateDir}`,
  );
  const shown = json ? JSON.stringify({ mounted: false, ...(left.length === 0 ? {} : { left }) }) : undefined;
  process.stdout.write(`${shown ?? `${dir}: not mounted${printable(lines.join(""))}`}\n`);
  return EXIT.notMounted;
}

/** The gateway of `wsfs start` may have been started again, and may have found its port taken. */
export function addressNow({ record, socket }: Served): string | undefined {
  if (record.gatewaySocket === undefined || socket.owner !== process.getuid?.()) return undefined;
  return readGatewayRecord(dirname(record.gatewaySocket))?.baseUrl;
}

type StatusItem = NonNullable<MountStatus["overtaken"]>[number];

interface DetachedFile extends StatusItem {
  readonly programs: readonly Pick<FileWriter, "pid" | "command">[];
}

/** Programs that have the files open, from /proc, as far as this user may look there. */
function withPrograms({ overtaken: files = [] }: MountStatus, { connection }: MountEntry): DetachedFile[] {
  const inodes = new Set(files.map(({ inode }) => inode));
  const writers = writersOf(mountsOf(readMountTable(), connection), inodes);
  return files.map((one) => ({
    ...one,
    programs: writers.flatMap(({ inode, pid, command }) => (inode === one.inode ? [{ pid, command }] : [])),
  }));
}

/** The largest number of files that get a line each. */
const DETACHED_LINES = 10;

/** A few aligned lines. Text of the gateway, such as the workspace's name, is made printable. */
export function describeStatus(state: MountStatus, detached: readonly DetachedFile[] = []): string {
  const requests = Object.values(state.operations).reduce((sum, count) => sum + count, 0);
  const lines: [string, string | undefined][] = [
    ["mounted", `${state.workspace.name} at ${state.mountpoint}, for ${formatDuration(state.uptime * 1000)}`],
    ["folder", state.folder === undefined ? undefined : `"${state.folder.name}" of the workspace, nothing else of it`],
    ["moment", state.at === undefined ? undefined : `${showTime(state.at)} (${state.at}): all is as it was then`],
    ["gateway", `${state.baseUrl} (${describeGateway(state)})`],
    ["changes", describeFreshness(state)],
    ["read-only", state.readOnly],
    ["paused", state.paused],
    ["to upload", describePending(state)],
    [
      "parked",
      state.parked === 0
        ? undefined
        : `${formatCount(state.parked, "change")} that cannot be sent without you; "wsfs queue" says why`,
    ],
    ...detached.slice(0, DETACHED_LINES).map((one): [string, string] => ["held open", describeDetached(one)]),
    ["held open", detached.length > DETACHED_LINES ? `and ${detached.length - DETACHED_LINES} more` : undefined],
    ["history", describeHistory(state)],
    ["names", describeNames(state)],
    ["conflicts", state.conflicts === 0 ? undefined : formatCount(state.conflicts, "copy", "copies")],
    ["cache", `${formatSize(state.cacheBytes)} of ${formatSize(state.cacheLimit)}`],
    ["restored", describeRestored(state)],
    ["quota", describeQuota(state)],
    ["disk", describeDisk(state)],
    ["settings", describeEnvironment(state)],
    ["owners", describeOwners(state)],
    ["restarts", describeRestarts(state)],
    [
      "transport",
      state.transport === "fuse-native"
        ? "fuse-native: a crash of the daemon ends the mount, reload is refused"
        : undefined,
    ],
    [
      "bytes",
      state.passthroughOff === undefined
        ? undefined
        : `all bytes go through the daemon (no passthrough): ${state.passthroughOff}`,
    ],
    ["state dir", state.stateDir],
    ["daemon", `pid ${state.pid}, release ${state.version}, ${formatCount(requests, "request")} of the kernel`],
  ];
  return lines
    .filter(([, value]) => value !== undefined)
    .map(([name, value = ""]) => `${name.padEnd(10)} ${printable(value)}\n`)
    .join("");
}

function describeGateway({ online, offlineMs }: MountStatus): string {
  if (online) return "online";
  const since = offlineMs === undefined ? "" : ` for ${formatDuration(offlineMs)}`;
  return `offline${since}: reads and writes go on from this machine`;
}

/** How soon remote changes are shown. */
function describeFreshness({ at, live, staleMs = 0, staleWhy, transport }: MountStatus): string {
  if (at !== undefined) return "none: what has changed since is not shown";
  if (live && transport === "fuse-native") return "live: remote changes are shown within a second or two";
  if (live) return "live: remote changes are shown at once";
  return `not live for ${formatDuration(staleMs)}: ${staleWhy ?? "checked again every second"}`;
}

const REST = {
  all: "the whole workspace: every folder can be listed offline",
  ahead: "the others are being read in the background",
  visited: "the others are read when a program looks into their folder",
} as const;

function describeNames({ names }: MountStatus): string | undefined {
  return names && `${formatCount(names.known, "name")} known; ${REST[names.rest]}`;
}

function describeHistory({ history }: MountStatus): string | undefined {
  if (history === undefined) return undefined;
  if (history === null) return "no folder of it: the workspace has nodes named .wsfs and .wsfs-history";
  return `in ${history}, as the workspace has a node named .wsfs`;
}

function describePending(state: MountStatus): string {
  if (state.dirty === 0) return state.settled ? "nothing" : "nothing; the gateway's index has yet to catch up";
  const uploading = state.uploading === 0 ? "" : `, ${state.uploading} under way`;
  const since = `oldest ${formatDuration(state.oldestPendingMs)} old`;
  return `${formatCount(state.dirty, "change")}, ${formatSize(state.bytesPending)} (${since}${uploading})`;
}

function describeDetached({ path, isRemoved, isWritten, programs }: DetachedFile): string {
  const who = programs.map(({ pid, command }) => `${command} (pid ${pid})`).join(", ") || "a program";
  const has = programs.length > 1 ? "have" : "has";
  const what = isRemoved ? "it was removed elsewhere" : "the name shows the content that was saved elsewhere";
  const then = isRemoved ? "comes back under that name, or beside what has it by then" : "becomes a copy beside it";
  const written = isWritten ? "content written to it since" : "content written to it";
  return `${path}: ${who} ${has} it open for writing as it was; ${what}, and ${written} ${then}`;
}

function describeRestored({ restored, stateDir }: MountStatus): string | undefined {
  if (restored === undefined) return undefined;
  const files = formatCount(restored.files, "changed file");
  return `${restored.why}; ${files} brought back, damaged files are in ${stateDir}/quarantine`;
}

function describeQuota({ quota }: MountStatus): string | undefined {
  if (quota === undefined) return undefined;
  const { limit, used, waiting } = quota;
  const over = used + waiting - limit;
  const toCome = waiting > 0 ? `, ${formatSize(waiting)} to come` : "";
  return `${formatSize(used)} of ${formatSize(limit)} used${toCome}${over > 0 ? `: over quota by ${formatSize(over)}` : ""}`;
}

function describeEnvironment({ environment }: MountStatus): string | undefined {
  if (environment === undefined) return undefined;
  const { name, file, trouble } = environment;
  return `those of environment ${name} in ${file}${trouble === undefined ? "" : `; not taken over: ${trouble}`}`;
}

function describeOwners({ owners }: MountStatus): string {
  return owners === "real"
    ? "real: the user who makes a file owns it"
    : "mine: all files are shown as the mounting user's";
}

function describeRestarts({ restarts }: MountStatus): string | undefined {
  return restarts === undefined ? undefined : `${restarts.count}, the last one because ${restarts.cause}`;
}

function describeDisk({ disk }: MountStatus): string | undefined {
  if (disk === undefined) return undefined;
  if (disk.reason !== undefined) return disk.reason;
  const limit = disk.unsentLimit === undefined ? "" : `, at most ${formatSize(disk.unsentLimit)} unsent`;
  const kept = `${formatSize(disk.reserve)} kept back, ${formatSize(disk.keepFree)} left free by the cache`;
  return `${formatSize(disk.available)} of ${formatSize(disk.total)} free (${kept}${limit})`;
}
