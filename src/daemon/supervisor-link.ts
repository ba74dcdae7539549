/**
 * The daemon's end of the socket to its supervisor: one line of text a message. Knows the words
 * the two exchange, not what is done about them.
 */
import { type Deferred, deferred } from "../lib/deferred.ts";
import type { Logger } from "../lib/log.ts";
import { systemClock } from "../lib/system-clock.ts";
import { withTimeout } from "./with-timeout.ts";

/** How the addon carries lines. */
export interface LineSocket {
  /** 0, or an errno: EAGAIN when the supervisor does not read, EPIPE when it is gone. */
  send(line: string, descriptor?: number): number;
  close(): void;
}
export type OpenLineSocket = (
  onLine: (line: string, descriptor: number | undefined) => void,
  onEnd: () => void,
) => LineSocket;

/** `isOver`: no copy of the mount is left in another mount namespace, so that the kernel ends the connection. */
export type UnmountResult = { readonly busy: string } | { readonly isOver: boolean };

export interface SupervisorLink {
  /**
   * All is ready for a mount, or is mounted already, on this device. Resolves with the connection's number and the
   * /dev/fuse descriptor, now ours: one more, when we had one.
   */
  prepared(device?: number): Promise<{ connection: number; descriptor: number }>;
  /** The mount is usable. */
  ready(): void;
  /** For how long it has been said; undefined: not yet. */
  servedMs(): number | undefined;
  /** The daemon cannot live: the supervisor shows the text and ends with the code. */
  failed(exitCode: number, text: string): void;
  /** The same, and no daemon of this release can: a later one was here. */
  outdated(text: string): void;
  /** Whoever started the mount is told, before it is usable. */
  note(text: string): void;
  heartbeat(): void;
  /**
   * Our last word: this daemon ends now, and the next one is of this program (undefined: of the same) and has these
   * settings; `tag` is told to it. Resolves with 0 or an errno.
   */
  reload(tag: string, settings: string, program: readonly string[] | undefined): Promise<number>;
  /** Asks for the mount to be taken off. */
  unmount(): Promise<UnmountResult>;
  /** The supervisor wants an end ("stop"), has taken the mount off ("unmounted"), or is gone ("gone"). */
  readonly ending: Promise<"stop" | "unmounted" | "gone">;
  /** The supervisor has ended before us. */
  isGone(): boolean;
  /**
   * From here on one that is gone is replaced, if it can be: what was asked of it is asked of the next. One that
   * went before is, too, for a daemon that takes over.
   */
  replaceWith(startAnother: () => OpenLineSocket | undefined): void;
  close(): void;
}

/** EPIPE: there is no supervisor at the other end. */
const GONE = 32;
/** Until that is heard. */
const GONE_LIMIT_MS = 1000;
/** The unit separator: in no JSON, and in no path that is asked for. */
export const WORD_END = "\x1f";

/** Lines are cut where the socket would refuse them. */
const TEXT_LENGTH = 2000;

/** `takesOver`: the device came with its start, so that it need not end with a supervisor that dies meanwhile. */
export function openSupervisorLink(open: OpenLineSocket, log: Logger, takesOver = false): SupervisorLink {
  const mounted = deferred<{ connection: number; descriptor: number }>();
  const ending = deferred<"stop" | "unmounted" | "gone">();
  let unmounting: Deferred<UnmountResult> | undefined;
  let ended = deferred<void>();

  let hasDevice = false;
  let gone = false;
  let readyAt: number | undefined;
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
        log.warn({ line }, "the supervisor said something unknown");
    }
  }

  function send(line: string, descriptor?: number): void {
    const error = socket.send(line.replace(/\s*\n\s*/g, " ").slice(0, TEXT_LENGTH), descriptor);
    // A supervisor that is gone is told by the end of the socket; a full one gets the next heartbeat.
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
    servedMs: () => (readyAt === undefined ? undefined : systemClock.elapsed() - readyAt),
    failed: (exitCode, text) => send(`failed ${exitCode} ${text}`),
    outdated: (text) => send(`outdated 1 ${text}`),
    note: (text) => send(`note ${text}`),
    heartbeat: () => send("heartbeat"),
    async reload(tag, settings, program = []) {
      const line = `reload ${tag} ${[settings, ...program].join(WORD_END)}`;
      const errno = socket.send(line);
      if (errno !== GONE) return errno;
      // It has died, and nobody has told us yet: the one in its place takes the word.
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
