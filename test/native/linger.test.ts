/** The device waits a moment for what a program asks next, and everything else of the loop has its turn all the same. */
import { once } from "node:events";
import { closeSync, readSync, writeSync } from "node:fs";
import { Worker } from "node:worker_threads";
import { afterEach, expect, it, vi } from "vitest";
import { DEVICE_BUFFER_SIZE, type Device, openDevice, socketPair } from "../../src/fuse/native.ts";

/** More questions than any number of turns is waited for. */
const CEASELESS = 300_000;

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

/** What is asked through `kernel` comes to `onAsked`, one at a time. */
function serve(onAsked: (message: Buffer, device: Device) => void): { kernel: number } {
  const [daemon, kernel] = socketPair("seqpacket");
  closing.push(() => closeSync(kernel));
  const device: Device = openDevice(
    daemon,
    DEVICE_BUFFER_SIZE,
    (messages) => {
      for (const message of messages) onAsked(message, device);
    },
    () => {},
  );
  closing.push(() => device.close());
  device.resumeReading();
  return { kernel };
}

it("takes what is asked right after an answer in the same turn of the loop, but leaves others their turns", async () => {
  let turns = 0;
  let mayAsk = true;
  const turn = () => {
    turns += 1;
    if (mayAsk) setImmediate(turn);
  };
  const answer = Buffer.alloc(64);
  const answeredIn: number[] = [];
  const { kernel } = serve((message, device) => {
    expect(device.reply([message])).toBe(0);
    answeredIn.push(turns);
    readSync(kernel, answer);
    if (mayAsk && answeredIn.length < CEASELESS) writeSync(kernel, "more");
  });
  turn();
  writeSync(kernel, "first");
  await vi.waitFor(() => expect(new Set(answeredIn).size).toBeLessThan(answeredIn.length), { timeout: 10_000 });
  mayAsk = false;
  expect(answeredIn.length).toBeLessThan(CEASELESS);
});

it("answers a program in another thread, at once or later, each question once and in order", async () => {
  const { kernel } = serve((message, device) => {
    const reply = () => expect(device.reply([message])).toBe(0);
    if (Number(message.toString()) % 3 === 0) setImmediate(reply);
    else reply();
  });
  const program = `
    const { workerData: kernel } = require("node:worker_threads");
    const { readSync, writeSync } = require("node:fs");
    const answer = Buffer.alloc(64);
    for (let i = 0; i < 3000; i++) {
      writeSync(kernel, String(i));
      const answered = answer.toString("utf8", 0, readSync(kernel, answer));
      if (answered !== String(i)) throw new Error("asked " + i + ", was answered " + answered);
    }`;
  const [code] = await once(new Worker(program, { eval: true, workerData: kernel }), "exit");
  expect(code).toBe(0);
});
