/**
 * The transport where the supervisor makes the mount. This daemon reads the device, and the mount outlives this daemon.
 */
import { release } from "node:os";
import * as systemCalls from "../content/system-calls.ts";
import { createDeviceFastPath } from "../fuse/fast-path.ts";
import { createKernelCache } from "../fuse/kernel-cache.ts";
import { backingClose, backingOpen } from "../fuse/native.ts";
import { createPassthrough } from "../fuse/passthrough.ts";
import { createSession } from "../fuse/session.ts";
import type { Logger } from "../lib/log.ts";
import type { Runtime } from "../lib/runtime.ts";
import { systemClock } from "../lib/system-clock.ts";
import { detachMounts } from "./detach-mounts.ts";
import { hasFatalSignal } from "./fatal-signal.ts";
import { createHandOver } from "./hand-over.ts";
import type { KeptState } from "./handle-file.ts";
import { stackDepth, timesAreExact, whyNoPassthrough } from "./kernel.ts";
import { kernelDevice } from "./kernel-device.ts";
import { startReplayer } from "./replayer.ts";
import type { DaemonSettings } from "./settings.ts";
import type { ServedMount, Transport } from "./transport.ts";
import { requestLimitMs } from "./waiting.ts";

interface DeviceOptions {
  readonly settings: DaemonSettings;
  readonly stateDir: string;
  readonly runtime: Runtime;
  readonly log: Logger;
  readonly kept: KeptState;
  /** This daemon takes over from another one. */
  readonly takesOver: boolean;
  /** Behave as with a kernel that never resends requests. */
  readonly noResend: boolean;
  /** See SessionOptions. */
  readonly firstPlace: () => number;
  /** Called when the device has come. */
  readonly hasMount: (mount: ServedMount) => unknown;
}

export function deviceTransport(options: DeviceOptions): Transport {
  const { settings, stateDir, runtime, log, kept, takesOver } = options;
  const whyNot = whyNoPassthrough(settings.passthrough, stateDir, systemCalls.isOnlyWriter);
  const passthrough = createPassthrough({ backingOpen, backingClose }, log, timesAreExact(release(), stateDir));
  const kernelCache = createKernelCache(systemClock, log);
  const fastPath = createDeviceFastPath();

  return {
    passthrough,
    kernelCache,
    fastPath,
    async serve(engine, link, closers) {
      const mount = await link.prepared();
      systemClock.step("daemon: has the device");
      options.hasMount(mount);
      const { descriptor } = mount;
      const device = kernelDevice(descriptor);
      const { replays } = engine;
      // The calls of these processes must be known as replays before the first request is read. The next replayer
      // forgets those that have ended.
      if (!settings.readOnly) for (const { pid } of kept.replayers) replays.formerly.add(pid);
      const session = createSession({
        device: device.open,
        fileSystem: engine.fileSystem,
        log,
        clock: runtime,
        deadlineMs: requestLimitMs(settings.shortenWaits),
        stackDepth: whyNot === undefined ? stackDepth(stateDir) : 0,
        step: (label) => systemClock.step(label),
        hasFatalSignal,
        noResend: options.noResend,
        inHand: kept.inHand,
        firstPlace: options.firstPlace(),
        rootIsKnown: kept.rootIsKnown,
        onRootKnown() {
          kept.keepRootKnown();
          kernelCache.rootKnown();
        },
        ...(!takesOver || kept.connection === undefined ? {} : { connection: kept.connection }),
      });
      closers.push(() => session.close());
      closers.push(() => passthrough.close());
      closers.push(() => kernelCache.close());
      // Runs before the session is closed: the device tells whether the mount is still ours.
      closers.push(() => link.isGone() && detachMounts(mount, log));
      const agreed = await session.initialized;
      if (agreed.passthrough) passthrough.use(descriptor);
      else passthrough.doWithout(whyNot ?? "it needs Linux 6.9");
      if (kept.connection === undefined) kept.agreed(agreed);
      // If the kernel resends nothing, requests must be written down before they are begun. The fast path cannot do
      // that, so it stays off.
      if (agreed.resend) device.useFastPath(fastPath);
      if (kept.rootIsKnown) kernelCache.rootKnown();
      const useKernelCache = () => kernelCache.use(device.notify, agreed.kernelMinor);
      useKernelCache();
      // The daemon before may have died after a change and before its invalidation.
      if (takesOver) engine.expireKernelCache();
      // In a read-only mount the kernel refuses to create or remove names, so that nothing can be replayed.
      if (!settings.readOnly) {
        const who = { mountpoint: settings.mountpoint, connection: mount.connection, former: kept.replayers };
        const replayer = startReplayer({ ...who, replays, keep: kept.keepReplayers, clock: runtime, log });
        closers.push(() => replayer.close());
      }
      systemClock.step("daemon: kernel answered");
      let resumeReplays: (() => void) | undefined;
      const handOver = createHandOver(
        settings,
        {
          hushKernel() {
            resumeReplays ??= replays.pause();
            kernelCache.hush();
            return device.delivered();
          },
          unhushKernel() {
            useKernelCache();
            resumeReplays?.();
            resumeReplays = undefined;
          },
          pause: () => device.pause(),
          drained: () => session.drained(),
          resend: agreed.resend,
          forgive: () => session.handOver(),
          leave: (quiet) => engine.leave(quiet),
        },
        kept.isWritten,
        log,
      );
      return { mount, session, handOver };
    },
  };
}
