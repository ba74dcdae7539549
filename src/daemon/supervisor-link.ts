/** The daemon's end of the socket to its supervisor. Each message is one line of text. This file knows no effects. */
import { type ElapsedTime, minus } from "../lib/clocks.ts";
import { type Deferred, deferred } from "../lib/deferred.ts";
import type { Logger } from "../lib/log.ts";
import { systemClock } from "../lib/system-clock.ts";
import { withTimeout } from "./with-timeout.ts";

/** The addon's interface for lines. */
interface LineSocket {
  /** Returns 0 or an errno: EAGAIN when the supervisor does not read, EPIPE when it is gone. */
  send(line: string, descriptor?: number): number;
  close(): void;
}
export type OpenLineSocket = (
  onLine: (line: string, descriptor: number | undefined) => void,
  onEnd: () => void,
) => LineSocket;

/** `isOver`: the kernel ends the connection, because no copy of the mount is left in another mount namespace. */
type UnmountResult = { readonly busy: string } | { readonly isOver: boolean };

export interface SupervisorLink {
  /**
   * Says that the daemon can serve a mount, or (with `device`) that it has mounted this device. Resolves with the
   * connection's number and the /dev/fuse descriptor, which is now ours; with `device` it is one more descriptor.
   * Rejects when the supervisor stops or is gone.
   */
  prepared(device?: number): Promise<{ connection: number; descriptor: number }>;
  /** Says that the mount is usable. */
  ready(): void;
  /** Milliseconds since `ready`. Undefined: not ready yet. */
  servedMs(): number | undefined;
  /** Says that this daemon cannot serve. The supervisor shows the text and ends with the code. */
  failed(exitCode: number, text: string): void;
  /** Like `failed`, for all daemons of this release: a later release has used the state dir. */
  outdated(text: string): void;
  /** A note for the command that starts the mount, before the mount is usable. */
  note(text: string): void;
  heartbeat(): void;
  /**
   * The last message: this daemon ends now. The supervisor starts the next one with this program (undefined: the same),
   * these settings and `tag`. Resolves with 0 or an errno.
   */
  reload(tag: string, settings: string, program: readonly string[] | undefined): Promise<number>;
  /** Asks the supervisor to take the mount off. Rejects when the supervisor is gone. */
  unmount(): Promise<UnmountResult>;
  /** The supervisor wants this daemon to end ("stop"), has taken the mount off ("unmounted"), or is gone ("gone"). */
  readonly ending: Promise<"stop" | "unmounted" | "gone">;
  /** The supervisor has ended before this daemon. */
  isGone(): boolean;
  /**
   * From now on a supervisor that is gone is replaced, if possible, and the new one gets the open requests of the old
   * one. For a daemon that takes over, that includes a supervisor that went before this call.
   */
  replaceWith(startAnother: () => OpenLineSocket | undefined): void;
  close(): void;
}

/** EPIPE: no supervisor is at the other end. */
const GONE = 32;
/** The longest time between the end of a supervisor and the notice of it. */
const GONE_LIMIT_MS = 1000;
/** The unit separator. It occurs in no JSON and in no path that is asked for. */
export const WORD_END = "\x1f";

/** Longer lines are cut, because the socket would refuse them. */
const TEXT_LENGTH = 2000;

/**
 * `takesOver`: this daemon gets its device at its start, so it does not end when the supervisor dies before it serves.
 */
export function openSupervisorLink(open: OpenLineSocket, log: Logger, takesOver = false): SupervisorLink {
  const mounted = deferred<{ connection: number; descriptor: number }>();
  const ending = deferred<"stop" | "unmounted" | "gone">();
  let unmounting: Deferred<UnmountResult> | undefined;
  let ended = deferred<void>();

  let hasDevice = false;
  let gone = false;
  let readyAt: ElapsedTime | undefined;
  let startAnother: (() => OpenLineSocket | undefined) | undefined;

  let socket = open(onLine, onEnd);

  function onEnd(): void {
    ended.resolve();
    ended = deferred();
    if (startAnother === undefined && takesOver && hasDevice) {
      gone = true;
      return;
    }
    const another = startAnother?.();
    if (another !== undefined) {
      log.warn({}, "the supervisor is gone; another one takes its place");
      socket.close();
      socket = another(onLine, onEnd);
      gone = false;
      if (unmounting !== undefined) send("unmount");
      return;
    }
    gone = true;
    mounted.reject(new Error("the supervisor is gone"));
    unmounting?.reject(new Error("the supervisor is gone"));
    ending.resolve("gone");
  }

  function onLine(line: string, descriptor: number | undefined): void {
    const [word = "", ...rest] = line.trimEnd().split(" ");
    const text = rest.join(" ");
    switch (word) {
      case "mounted":
        hasDevice = descriptor !== undefined;
        if (descriptor !== undefined) mounted.resolve({ connection: Number(text), descriptor });
        else mounted.reject(new Error("the supervisor sent no descriptor of the mount"));
        break;
      case "stop":
        mounted.reject(new Error("the supervisor was told to stop"));
        ending.resolve("stop");
        break;
      case "unmounted":
        unmounting?.resolve({ isOver: text !== "elsewhere" });
        ending.resolve("unmounted");
        break;
      case "busy":
        unmounting?.resolve({ busy: text || "busy" });
        unmounting = undefined;
        break;
      default:
        log.warn({ line }, "the supervisor sent an unknown line");
    }
  }

  function send(line: string, descriptor?: number): void {
    const error = socket.send(line.replace(/\s*\n\s*/g, " ").slice(0, TEXT_LENGTH), descriptor);
    // If the supervisor is gone, `onEnd` follows. If its socket is full, a later heartbeat gets through.
    if (error !== 0) log.debug({ line: line.split(" ", 1)[0], errno: error }, "the supervisor did not take a line");
  }

  return {
    prepared(device) {
      send("prepared", device);
      return mounted.promise;
    },
    ready() {
      readyAt ??= systemClock.elapsed();
      send("ready");
    },
    servedMs: () => (readyAt === undefined ? undefined : minus(systemClock.elapsed(), readyAt)),
    failed: (exitCode, text) => send(`failed ${exitCode} ${text}`),
    outdated: (text) => send(`outdated 1 ${text}`),
    note: (text) => send(`note ${text}`),
    heartbeat: () => send("heartbeat"),
    async reload(tag, settings, program = []) {
      const line = `reload ${tag} ${[settings, ...program].join(WORD_END)}`;
      const errno = socket.send(line);
      if (errno !== GONE) return errno;
      // The supervisor has died, and its end was not reported yet. The one that replaces it gets the message.
      await withTimeout(ended.promise, GONE_LIMIT_MS);
      return socket.send(line);
    },
    unmount() {
      if (unmounting === undefined) {
        unmounting = deferred();
        send("unmount");
      }
      return unmounting.promise;
    },
    ending: ending.promise,
    isGone: () => gone,
    replaceWith(start) {
      startAnother = start;
      if (gone) onEnd();
    },
    close: () => socket.close(),
  };
}
