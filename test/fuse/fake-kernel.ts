/**
 * Plays the kernel for tests of the session: builds requests byte by byte from the numbers of
 * fuse-protocol.md (none of our tables), keeps the replies, and has a clock that is moved by hand.
 */

import type { FileSystem } from "../../src/engine/api/index.ts";
import type { Clock } from "../../src/fuse/in-flight.ts";
import { createSession, type Session, type SessionOptions } from "../../src/fuse/session.ts";
import { elapsedTime } from "../../src/lib/clocks.ts";
import type { Logger, LogLevel } from "../../src/lib/log.ts";

export interface Reply {
  readonly id: number;
  /** Bit 63 of its unique. */
  readonly resent: boolean;
  /** 0 or a negative errno. */
  readonly error: number;
  readonly body: Buffer;
}

export interface LogLine {
  readonly level: LogLevel;
  readonly message: string;
  readonly fields: Record<string, unknown>;
}

export interface FakeKernel {
  readonly session: Session;
  readonly replies: Reply[];
  readonly lines: LogLine[];
  /** What the next replies are answered with; then 0. */
  readonly errnos: number[];
  readonly clock: Clock & { advance(milliseconds: number): void; pending(): number };
  /** Calls of log.debug, also when that level is off. */
  readonly debugCalls: () => number;
  readonly closed: () => boolean;
  /** Sends one request and resolves to its reply. */
  call(opcode: number, nodeid: number, ...body: Part[]): Promise<Reply>;
  /** Sends one request; its id. */
  send(opcode: number, nodeid: number, ...body: Part[]): number;
  sendRaw(...messages: Uint8Array[]): void;
  replyTo(id: number): Promise<Reply>;
  end(errno: string): void;
}

/** A string is sent with its NUL, a number as u32. */
export type Part = string | number | bigint | Uint8Array;

export function bytesOf(...parts: Part[]): Buffer {
  return Buffer.concat(
    parts.map((part) => {
      if (typeof part === "string") return Buffer.from(`${part}\0`);
      if (part instanceof Uint8Array) return part;
      const bytes = Buffer.alloc(typeof part === "bigint" ? 8 : 4);
      if (typeof part === "bigint") bytes.writeBigUInt64LE(BigInt.asUintN(64, part));
      else bytes.writeUInt32LE(part >>> 0);
      return bytes;
    }),
  );
}

export interface Header {
  opcode: number;
  id?: bigint;
  nodeid?: number | bigint;
  /** In units of 8 bytes. */
  extensions?: number;
  /** Instead of the true length. */
  length?: number;
}

export const CALLER = { uid: 1000, gid: 1001, pid: 4242 };

export function requestBytes(header: Header, ...body: Part[]): Buffer {
  const rest = bytesOf(...body);
  const { opcode, id = 2n, nodeid = 1, extensions = 0, length = 40 + rest.length } = header;
  const { uid, gid, pid } = CALLER;
  return Buffer.concat([bytesOf(length, opcode, id, BigInt(nodeid), uid, gid, pid, extensions), rest]);
}

export const INIT_FLAGS = 0x73fffffb;

export function initBody(minor = 45, major = 7, flags = INIT_FLAGS): Part[] {
  return [major, minor, 131072, flags, 0x5fd, Buffer.alloc(44)];
}

interface Options
  extends Partial<
    Pick<
      SessionOptions,
      | "deadlineMs"
      | "slowMs"
      | "connection"
      | "inHand"
      | "firstPlace"
      | "noResend"
      | "hasFatalSignal"
      | "rootIsKnown"
      | "onRootKnown"
    >
  > {
  fileSystem: FileSystem;
  level?: LogLevel;
  /** False: INIT is left to the test. */
  init?: boolean;
}

const LEVELS: LogLevel[] = ["debug", "info", "warn", "error"];

export function startFakeKernel({ fileSystem, level = "debug", init = true, ...more }: Options): FakeKernel {
  const replies: Reply[] = [];
  const lines: LogLine[] = [];
  const errnos: number[] = [];
  const waiting = new Map<number, (reply: Reply) => void>();
  const clock = createManualClock();
  let nextId = 0;
  let debugCalls = 0;
  let isClosed = false;
  let feed: { onRequests: (messages: Uint8Array[]) => void; onEnd: (errno: string) => void } | undefined;

  const session = createSession({
    fileSystem,
    clock,
    log: recordingLogger(level, lines, () => {
      debugCalls += 1;
    }),
    device(onRequests, onEnd) {
      feed = { onRequests, onEnd };
      return {
        reply(parts) {
          const message = Buffer.concat(parts);
          const reply = {
            id: Number(message.readBigUInt64LE(8) & 0x7fff_ffff_ffff_ffffn),
            resent: message.readUInt8(15) >= 0x80,
            error: message.readInt32LE(4),
            body: message.subarray(16),
          };
          if (message.readUInt32LE(0) !== message.length) throw new Error("a reply with a wrong length");
          replies.push(reply);
          const errno = errnos.shift() ?? 0;
          if (errno === 0) waiting.get(reply.id)?.(reply);
          return errno;
        },
        close() {
          isClosed = true;
        },
      };
    },
    ...more,
  });

  const kernel: FakeKernel = {
    session,
    replies,
    lines,
    errnos,
    clock,
    debugCalls: () => debugCalls,
    closed: () => isClosed,
    sendRaw: (...messages) => feed?.onRequests(messages),
    send(opcode, nodeid, ...body) {
      nextId += 2;
      kernel.sendRaw(requestBytes({ opcode, id: BigInt(nextId), nodeid }, ...body));
      return nextId;
    },
    async call(opcode, nodeid, ...body) {
      return kernel.replyTo(kernel.send(opcode, nodeid, ...body));
    },
    replyTo(id) {
      const there = replies.find((reply) => reply.id === id);
      if (there !== undefined) return Promise.resolve(there);
      return new Promise((resolve) => waiting.set(id, resolve));
    },
    end: (errno) => feed?.onEnd(errno),
  };
  if (init) {
    kernel.send(26, 0, ...initBody());
    replies.length = 0;
    lines.length = 0;
  }
  return kernel;
}

function recordingLogger(least: LogLevel, lines: LogLine[], onDebug: () => void): Logger {
  const isLevelEnabled = (level: LogLevel) => LEVELS.indexOf(level) >= LEVELS.indexOf(least);
  const write = (level: LogLevel) => (fields: object, message: string) => {
    if (level === "debug") onDebug();
    if (isLevelEnabled(level)) lines.push({ level, message, fields: fields as Record<string, unknown> });
  };
  return { isLevelEnabled, debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") };
}

function createManualClock(): FakeKernel["clock"] {
  let now = 1000;
  let timers: { at: number; callback: () => void }[] = [];
  return {
    elapsed: () => elapsedTime(now),
    pending: () => timers.length,
    setTimer(milliseconds, callback) {
      const timer = { at: now + milliseconds, callback };
      timers.push(timer);
      return {
        cancel() {
          timers = timers.filter((other) => other !== timer);
        },
      };
    },
    advance(milliseconds) {
      const until = now + milliseconds;
      for (;;) {
        const due = timers.filter((timer) => timer.at <= until).sort((a, b) => a.at - b.at)[0];
        if (due === undefined) break;
        timers = timers.filter((timer) => timer !== due);
        now = due.at;
        due.callback();
      }
      now = until;
    },
  };
}

/** A promise that is settled by hand. */
export function gate<T = void>(): { promise: Promise<T>; open: (value: T) => void; fail: (error: unknown) => void } {
  let open: (value: T) => void = () => {};
  let fail: (error: unknown) => void = () => {};
  const promise = new Promise<T>((resolve, reject) => {
    open = resolve;
    fail = reject;
  });
  return { promise, open, fail };
}

/** Lets everything that is ready run. */
export function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
