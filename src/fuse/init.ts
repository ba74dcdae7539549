/**
 * INIT: the protocol version and the features of the connection. A pure function of the kernel's offer.
 *
 * The reasons for the flags: EXPLICIT_INVAL_DATA, because pages of two versions can never mix (content adopted from
 * elsewhere gets a new kernel node id), so the kernel must not drop pages on its own. CACHE_SYMLINKS for the same
 * reason: the target of a link is its content. Never WRITEBACK_CACHE: with it the kernel ignores our sizes, and does no
 * passthrough. Locks are not asked for: the kernel keeps them itself.
 */
import { INIT, INIT2 } from "./flags.ts";
import type { Values } from "./layout.ts";
import type { INIT_OUT } from "./reply-structs.ts";
import type { INIT_IN } from "./request-structs.ts";
import type { WireVersion } from "./requests.ts";

const MAJOR = 7;
const NEWEST_MINOR = 45;
/** Linux 5.4. Every body that we read or send has had its present form since. */
const OLDEST_MINOR = 31;

export const MAX_WRITE = 1024 * 1024;
const MAX_PAGES = 256;
const MAX_BACKGROUND = 64;

const WANTED =
  INIT.ASYNC_READ |
  INIT.ATOMIC_O_TRUNC |
  INIT.BIG_WRITES |
  INIT.DO_READDIRPLUS |
  INIT.READDIRPLUS_AUTO |
  INIT.ASYNC_DIO |
  INIT.PARALLEL_DIROPS |
  INIT.ABORT_ERROR |
  INIT.MAX_PAGES |
  INIT.CACHE_SYMLINKS |
  INIT.EXPLICIT_INVAL_DATA |
  INIT.HANDLE_KILLPRIV_V2 |
  INIT.SETXATTR_EXT |
  INIT.INIT_EXT;

/** The result of INIT. A daemon that takes over a mount is given it, because INIT comes only once. */
export interface Connection extends WireVersion {
  readonly minor: number;
  readonly kernelMinor: number;
  /** The flags that were both asked for and offered: bits 0-31 and 32-63. */
  readonly flags: number;
  readonly flags2: number;
  readonly maxWrite: number;
  /** Opened files may be handed to the kernel, which then reads, writes and maps them without us. */
  readonly passthrough: boolean;
  /** Requests that are not answered when we die are sent again to the daemon that takes over (Linux 6.9). */
  readonly resend: boolean;
}

/** Our own conditions for asking for a feature. */
export interface Wishes {
  /**
   * The largest number of stacked file systems below ours for passthrough: 1, or 2 if cache files are on an overlay. 0:
   * no passthrough.
   */
  readonly stackDepth: 0 | 1 | 2;
  /** Behave as with a kernel that resends nothing. */
  readonly noResend?: boolean;
}

export type InitRequest = Values<typeof INIT_IN.fields>;
type InitReply = Partial<Values<typeof INIT_OUT.fields>>;

type Negotiation =
  | { readonly kind: "agreed"; readonly reply: InitReply; readonly connection: Connection }
  /** The kernel is newer than major 7: it is told so and asks again. */
  | { readonly kind: "again"; readonly reply: InitReply }
  | { readonly kind: "refused"; readonly reason: string };

export function negotiate(request: InitRequest, { stackDepth, noResend = false }: Wishes): Negotiation {
  const { major, minor } = request;
  if (major > MAJOR) return { kind: "again", reply: { major: MAJOR, minor: NEWEST_MINOR } };
  if (major < MAJOR || minor < OLDEST_MINOR) {
    const expected = `${MAJOR}.${OLDEST_MINOR} or newer is needed (Linux 5.4)`;
    return { kind: "refused", reason: `the kernel speaks FUSE ${major}.${minor}; ${expected}` };
  }
  const agreedMinor = Math.min(minor, NEWEST_MINOR);
  const flags = WANTED & request.flags;
  const maxPages = (flags & INIT.MAX_PAGES) !== 0 ? MAX_PAGES : 0;
  const hasSecondWord = (flags & INIT.INIT_EXT) !== 0;
  const flags2 = hasSecondWord && stackDepth > 0 ? request.flags2 & INIT2.PASSTHROUGH : 0;
  return {
    kind: "agreed",
    connection: {
      minor: agreedMinor,
      kernelMinor: minor,
      flags,
      flags2,
      maxWrite: MAX_WRITE,
      passthrough: flags2 !== 0,
      resend: hasSecondWord && !noResend && (request.flags2 & INIT2.HAS_RESEND) !== 0,
      setxattrExtended: (flags & INIT.SETXATTR_EXT) !== 0,
    },
    reply: {
      major: MAJOR,
      minor: agreedMinor,
      // INIT can only make it smaller.
      max_readahead: request.max_readahead,
      flags,
      max_background: MAX_BACKGROUND,
      congestion_threshold: (MAX_BACKGROUND * 3) / 4,
      max_write: MAX_WRITE,
      time_gran: 1,
      max_pages: maxPages,
      flags2,
      max_stack_depth: flags2 !== 0 ? stackDepth : 0,
    },
  };
}
