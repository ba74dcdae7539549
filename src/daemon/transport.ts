/**
 * The transport between kernel and engine: /dev/fuse itself (device-transport.ts), or libfuse (library-transport.ts).
 */

import type { Engine, FastPath, KernelCache } from "../engine/api/index.ts";
import type { KernelPassthrough } from "../fuse/passthrough.ts";
import type { Session } from "../fuse/session.ts";
import type { HandOver } from "./hand-over.ts";
import type { SupervisorLink } from "./supervisor-link.ts";

export interface Transport {
  /** Exists before the mount, as kernelCache and fastPath do, because the engine is made with them. */
  readonly passthrough: KernelPassthrough;
  readonly kernelCache: KernelCache;
  /** Absent: no fast path. */
  readonly fastPath?: FastPath;
  /**
   * Makes the mount, or has it made, and serves it. Must be called when all else is ready. Parts that must end with the
   * mount are added to `closers` at once.
   */
  serve(engine: Engine, link: SupervisorLink, closers: (() => unknown)[]): Promise<Serving>;
}

export interface ServedMount {
  /** The number of the connection. */
  readonly connection: number;
  /** The descriptor of the device. */
  readonly descriptor: number;
}

export interface Serving {
  readonly mount: ServedMount;
  readonly session: Pick<Session, "ended" | "operations" | "moved" | "drained">;
  readonly handOver: HandOver;
}
