/**
 * The mount as libfuse makes it (--transport fuse-native), in this process. It ends with this process, and no other
 * daemon can take it over. The supervisor still gets the device, to watch the mount and to detach it.
 */
import { existsSync, fstatSync, readdirSync, statSync } from "node:fs";
import { delimiter, join } from "node:path";
import { NO_KERNEL_CACHE, StartError } from "../engine/api/index.ts";
import { backingClose, backingOpen, isConnected } from "../fuse/native.ts";
import { createPassthrough } from "../fuse/passthrough.ts";
import { LibraryError, loadLibrary, whyNotMounted } from "../fuse-native/library.ts";
import { createLibrarySession } from "../fuse-native/session.ts";
import type { Logger } from "../lib/log.ts";
import type { Runtime } from "../lib/runtime.ts";
import { detachDevice, detachMounts } from "./detach-mounts.ts";
import { noHandOver } from "./hand-over.ts";
import type { DaemonSettings } from "./settings.ts";
import type { Transport } from "./transport.ts";
import { requestLimitMs } from "./waiting.ts";

interface LibraryOptions {
  readonly settings: DaemonSettings;
  readonly runtime: Runtime;
  readonly log: Logger;
}

/** The package takes no longer path, and would cut it off. */
const MOUNTPOINT_BYTES_MAX = 1023;
const SOURCE_LENGTH = 200;
/** libfuse calls the program by this name, in /bin or by PATH. */
const FUSERMOUNT = "fusermount";

/** Throws a StartError when libfuse cannot be used here. */
export async function openLibrary(mountpoint: string): Promise<(options: LibraryOptions) => Transport> {
  if (Buffer.byteLength(mountpoint) > MOUNTPOINT_BYTES_MAX) {
    throw new StartError(`--transport fuse-native takes no folder of over ${MOUNTPOINT_BYTES_MAX} bytes`);
  }
  if (process.getuid?.() !== 0 && !isInstalled(FUSERMOUNT)) {
    throw new StartError(`--transport fuse-native needs ${FUSERMOUNT} (package fuse3); only root mounts without it`);
  }
  try {
    const library = await loadLibrary();
    return (options) => libraryTransport(options, library);
  } catch (error) {
    if (error instanceof LibraryError) throw new StartError(error.message);
    throw error;
  }
}

function isInstalled(program: string): boolean {
  return ["/bin", ...(process.env.PATH ?? "").split(delimiter)].some((folder) => existsSync(join(folder, program)));
}

function libraryTransport(
  { settings, runtime, log }: LibraryOptions,
  library: Awaited<ReturnType<typeof loadLibrary>>,
): Transport {
  const { mountpoint } = settings;
  const passthrough = createPassthrough({ backingOpen, backingClose }, log, false);
  passthrough.doWithout("libfuse 2 knows none (--transport fuse-native)");
  let { tell, everything } = NO_KERNEL_CACHE;

  return {
    passthrough,
    kernelCache: {
      expiresNames: false,
      tell: (news, known) => tell(news, known),
      everything: (known) => everything(known),
    },
    async serve(engine, link, closers) {
      const session = createLibrarySession({
        fileSystem: engine.fileSystem,
        log,
        clock: runtime,
        deadlineMs: requestLimitMs(settings.shortenWaits),
      });
      ({ tell, everything } = session.kernelCache);
      closers.push(() => session.close());
      let isTaken = false;
      closers.push(async () => {
        const device = isTaken ? undefined : ownDevice();
        if (device !== undefined) await detachDevice(device, mountpoint, log);
      });
      try {
        await library.mount(mountpoint, mountOptions(settings), session.operations);
      } catch (error) {
        log.error({ err: error }, "libfuse cannot mount");
        throw new StartError(`libfuse cannot mount on ${mountpoint}: ${whyNotMounted(error)}`);
      }
      const mount = await link.prepared(ownDevice());
      isTaken = true;
      closers.push(() => link.isGone() && detachMounts(mount, log));
      const ended = session.watch(() => isConnected(mount.descriptor));
      return {
        mount,
        session: { ended, operations: () => session.counts(), moved: () => ({}), drained: () => session.drained() },
        handOver: noHandOver("it is mounted with --transport fuse-native, which no other daemon can take over"),
      };
    },
  };
}

function mountOptions({ fuseNative, workspace, readOnly }: DaemonSettings): string[] {
  const { source = workspace, allowOther = false } = fuseNative ?? {};
  return [
    `fsname=${source.slice(0, SOURCE_LENGTH)}`,
    ...["subtype=wsfs", "nosuid", "nodev", "default_permissions"],
    ...(readOnly ? ["ro"] : []),
    ...(allowOther ? ["allow_other"] : []),
    ...["use_ino", "atomic_o_trunc", "big_writes", "max_write=131072"],
    // The kernel cannot be told of changes through libfuse, so it asks again after a second.
    ...["attr_timeout=1", "entry_timeout=1", "negative_timeout=0"],
  ];
}

/** The descriptor of /dev/fuse that libfuse opened, while libfuse has it open. */
function ownDevice(): number | undefined {
  const { rdev } = statSync("/dev/fuse");
  return readdirSync("/proc/self/fd")
    .map(Number)
    .find((fd) => {
      try {
        return fstatSync(fd).rdev === rdev;
      } catch {
        return false; // the descriptor of the list itself, closed by now
      }
    });
}
