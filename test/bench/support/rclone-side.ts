/**
 * The same work on a mount of rclone's: a plain folder that it serves by WebDAV, behind a proxy that is as far away as the
 * gateway. Its cache is as ours is, of whole files, on the same disk, and empty after `forget`.
 */
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { run, until } from "../../support/child.ts";
import { check, type Place } from "../../support/wsfs.ts";
import { type Line, startRelay } from "./relay.ts";
import { type ColdSide, dropCaches } from "./sides.ts";
import { speaking } from "./speaking.ts";

const UPLOADED_MS = 600_000;
const TYPE = "fuse.rclone";

export interface RcloneSide extends ColdSide {
  /** The folder that is served. */
  readonly source: string;
  /** Resolves when it is not mounted any more. */
  end(): Promise<void>;
}

/** Why there is none; undefined: there can be. */
export async function whyNoRclone(place: Place): Promise<string | undefined> {
  const found = await place.sh("command -v rclone");
  return found.code === 0 ? undefined : "this machine has no rclone (Debian: apt-get install rclone)";
}

/** Behind such a line. To be used only after `forget`. */
export async function rcloneSide(place: Place, name: string, line: Line): Promise<RcloneSide> {
  const source = place.path(`${name}.source`);
  const folder = place.path(name);
  check(await place.sh(`mkdir -p '${source}' '${folder}'`));
  const server = startRclone(place, ["serve", "webdav", source, "--addr", "127.0.0.1:0"]);
  const { port } = new URL(await server.said(/started on (http:\S+)/));
  const far = `${await startRelay(place, port, line)}/`;
  let number = 0;
  let mounted: { readonly child: ChildProcess; readonly control: string } | undefined;

  // An ordinary user may have a mount namespace of their own.
  const isMounted = async () => (await place.sh(`grep -q ' ${folder} ${TYPE} ' /proc/self/mounts`)).code === 0;

  async function unmount(): Promise<void> {
    const child = mounted?.child;
    mounted = undefined;
    if (child === undefined) return;
    const ended = once(child, "exit");
    child.kill("SIGTERM");
    await ended;
    await until("rclone has unmounted", async () => !(await isMounted()));
  }

  async function forget(): Promise<void> {
    await unmount();
    number += 1;
    const cache = ["--vfs-cache-mode", "full", "--cache-dir", place.path(`${name}.cache-${number}`)];
    const control = ["--rc", "--rc-no-auth", "--rc-addr", "127.0.0.1:0"];
    const from = ["--webdav-url", far, "--webdav-vendor", "other"];
    const rclone = startRclone(place, ["mount", ":webdav:", folder, ...from, ...cache, ...control]);
    mounted = { child: rclone.child, control: await rclone.said(/remote control on (http:\S+)/) };
    await until("rclone has mounted", isMounted);
    await dropCaches(place);
  }

  return {
    kind: "mount",
    folder,
    source,
    forget,
    async finishWork() {
      await until(
        "rclone has uploaded all",
        async () => mounted === undefined || isUploaded(mounted.control),
        UPLOADED_MS,
      );
      check(await place.sh(`sync -f '${source}'`));
    },
    work: async () => undefined,
    async empty() {
      await unmount();
      check(await place.sh(`find '${source}' -mindepth 1 -delete`));
      await forget();
    },
    async end() {
      await unmount();
      server.child.kill("SIGTERM");
      await run("umount", ["-l", folder]);
    },
  };
}

async function isUploaded(control: string): Promise<boolean> {
  const answer: unknown = await (await fetch(new URL("vfs/stats", control), { method: "POST" })).json();
  const cache = fieldOf(answer, "diskCache");
  const [underWay, queued] = [fieldOf(cache, "uploadsInProgress"), fieldOf(cache, "uploadsQueued")];
  if (typeof underWay !== "number" || typeof queued !== "number") {
    throw new Error(`expected what is uploaded of rclone, got ${JSON.stringify(answer)}`);
  }
  return underWay + queued === 0;
}

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? Object.getOwnPropertyDescriptor(value, name)?.value : undefined;
}

const startRclone = (place: Place, args: readonly string[]) =>
  speaking(place, "rclone", ["--config", "/dev/null", ...args]);
