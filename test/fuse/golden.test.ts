/**
 * The codec against what the running kernel sent (`golden/record.py` wrote it down): every message
 * must decode, and to the arguments of the system call that provoked it.
 */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { type Message, parseMessage } from "../../src/fuse/message.ts";
import { OPERATIONS } from "../../src/fuse/opcodes.ts";

interface Step {
  asked: string;
  expect: { op: number; args: Record<string, unknown>; nodeid?: number | null }[];
  /** What a BATCH_FORGET of this step must hold. */
  batch?: { nodeid: number; nlookup: number }[];
  /** Raw messages, hex. */
  requests: string[];
}

interface Recording {
  setxattrExtended: boolean;
  caller: { uid: number; gid: number; pid: number };
  steps: Step[];
}

const file = new URL("golden/linux-6.18.json", import.meta.url);
const { recordings } = JSON.parse(readFileSync(file, "utf8")) as { recordings: Record<string, Recording> };

function parse(hex: string): Message {
  return parseMessage(new Uint8Array(Buffer.from(hex, "hex")));
}

function decode(message: Message, recording: Recording): unknown {
  return hexed(OPERATIONS.get(message.opcode)?.decode(message, recording));
}

/** Bytes as hex, so that they compare with the recording. */
function hexed(value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value).toString("hex");
  if (Array.isArray(value)) return value.map(hexed);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, field]) => [key, hexed(field)]));
}

function stepOf(recording: Recording | undefined, asked: string): { messages: Message[]; step: Step } {
  const step = recording?.steps.find((candidate) => candidate.asked === asked);
  if (step === undefined) throw new Error(`no step "${asked}" in the recording`);
  return { step, messages: step.requests.map(parse) };
}

/** Never sent on a normal mount, says fuse-protocol.md. */
const NEVER_SENT = ["BMAP", "DESTROY", "SETUPMAPPING", "REMOVEMAPPING", "SYNCFS"];

describe.each(Object.entries(recordings))("a recorded connection (%s)", (_, recording) => {
  it.each(recording.steps.map((step) => [step.asked, step] as const))("%s", (_, step) => {
    const messages = step.requests.map(parse);
    for (const { op, args, nodeid } of step.expect) {
      const found = messages.filter(
        (message) => message.opcode === op && (nodeid == null || message.nodeid === nodeid),
      );
      const decoded = found.map((message) => decode(message, recording));
      expect(decoded).toContainEqual(expect.objectContaining(nested(args)));
    }
  });

  it("carries the caller in each request a process made", () => {
    const creations = recording.steps
      .flatMap(({ requests }) => requests.map(parse))
      .filter(({ opcode }) => opcode === 35 || opcode === 21);
    expect(creations.length).toBeGreaterThan(1);
    for (const { uid, gid, pid } of creations) expect({ uid, gid, pid }).toEqual(recording.caller);
  });

  it("decodes every message without complaint and to its end", () => {
    for (const hex of recording.steps.flatMap(({ requests }) => requests))
      expect(() => decode(parse(hex), recording)).not.toThrow();
  });
});

function nested(args: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(args).map(([key, value]) => [
      key,
      typeof value === "object" && value !== null && !Array.isArray(value) ? expect.objectContaining(value) : value,
    ]),
  );
}

it("every opcode a normal mount sends is in the recording", () => {
  const recorded = new Set(
    Object.values(recordings).flatMap(({ steps }) =>
      steps.flatMap(({ requests }) => requests.map((hex) => parse(hex).opcode)),
    ),
  );
  const missing = [...OPERATIONS.values()].filter(({ code }) => !recorded.has(code)).map(({ name }) => name);
  expect(missing).toEqual(NEVER_SENT);
});

it("INIT shows what this kernel offers", () => {
  const { messages } = stepOf(recordings.all, "mount(2)");
  const [init] = messages;
  if (init === undefined) throw new Error("no INIT in the recording");
  expect(OPERATIONS.get(init.opcode)?.decode(init, { setxattrExtended: false })).toEqual({
    major: 7,
    minor: 45,
    max_readahead: 131072,
    flags: 0x73fffffb,
    flags2: 0x5fd,
  });
});

it("INTERRUPT names the request it is for", () => {
  const { messages } = stepOf(recordings.all, "stat(hold), a signal meanwhile");
  const lookup = messages.find(({ opcode }) => opcode === 1);
  const interrupt = messages.find(({ opcode }) => opcode === 36);
  if (interrupt === undefined || lookup === undefined) throw new Error("no INTERRUPT in the recording");
  expect(OPERATIONS.get(36)?.decode(interrupt, { setxattrExtended: true })).toEqual({ unique: lookup.id });
  expect(interrupt.id).toBe(lookup.id + 1);
});

it("a resent request has the id it had, and says so", () => {
  const { messages } = stepOf(recordings.all, "stat(again), RESEND meanwhile");
  const [first, second] = messages.filter(({ opcode }) => opcode === 1);
  expect(first?.resent).toBe(false);
  expect(second?.resent).toBe(true);
  expect(second?.id).toBe(first?.id);
});

it("BATCH_FORGET gives back exactly what was counted", () => {
  const { step, messages } = stepOf(recordings.all, "NOTIFY_PRUNE(fifo, device, folder)");
  const forgets = messages
    .filter(({ opcode }) => opcode === 42 || opcode === 2)
    .flatMap((message) => {
      const decoded = OPERATIONS.get(message.opcode)?.decode(message, { setxattrExtended: true });
      return message.opcode === 42 ? (decoded as { forgets: unknown[] }).forgets : [decoded];
    });
  expect(messages.some(({ opcode }) => opcode === 42)).toBe(true);
  expect(forgets).toHaveLength(step.batch?.length ?? -1);
  expect(forgets).toEqual(expect.arrayContaining(step.batch ?? []));
});
