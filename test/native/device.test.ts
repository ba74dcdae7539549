/** The addon's device, over a socket pair whose other end (a second device) plays the kernel. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, fstatSync, mkdtempSync, openSync, readlinkSync, readSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import {
  backingClose,
  backingOpen,
  connectionNumber,
  DEVICE_BUFFER_SIZE,
  type Device,
  openControl,
  openDevice,
  receiveDescriptor,
  socketPair,
} from "../../src/fuse/native.ts";
import { patiently } from "../support/patiently.ts";

/** Node 20 runs no TypeScript: child processes use the addon itself. */
const addonPath = join(import.meta.dirname, "../../native/build/Release/wsfs.node");

interface End {
  readonly device: Device;
  readonly fd: number;
  /** The messages of each wake. */
  readonly wakes: Buffer[][];
  readonly ends: string[];
  messages(): Buffer[];
}

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

function end(fd: number): End {
  const wakes: Buffer[][] = [];
  const ends: string[] = [];
  const device = openDevice(
    fd,
    DEVICE_BUFFER_SIZE,
    (messages) => wakes.push(messages),
    (name) => ends.push(name),
  );
  closing.push(() => device.close());
  return { device, fd, wakes, ends, messages: () => wakes.flat() };
}

function pair(): { daemon: End; kernel: End } {
  const [first, second] = socketPair("seqpacket");
  return { daemon: end(first), kernel: end(second) };
}

/** Whether messages of this many bytes fit through a socket pair here (net.core.wmem_max bounds ordinary users). */
function fits(bytes: number): boolean {
  const [first, second] = socketPair("seqpacket");
  try {
    return writeSync(first, Buffer.alloc(bytes)) === bytes;
  } catch {
    return false;
  } finally {
    closeSync(first);
    closeSync(second);
  }
}

function numbered(count: number): Buffer[] {
  return Array.from({ length: count }, (_, i) => Buffer.from(`message ${i} ${"x".repeat(i % 50)}`));
}

describe("reading", () => {
  it("hands all messages that are there to JavaScript in one call, in order", async () => {
    const { daemon, kernel } = pair();
    const sent = numbered(40);
    for (const message of sent) expect(kernel.device.reply([message])).toBe(0);
    daemon.device.resumeReading();
    await vi.waitFor(() => expect(daemon.messages()).toHaveLength(40), patiently);
    expect(daemon.wakes).toHaveLength(1);
    expect(daemon.messages()).toEqual(sent);
  });

  it("goes on after a wake's budget, so that timers get their turn, and loses nothing", async () => {
    const { daemon, kernel } = pair();
    const sent = numbered(200);
    for (const message of sent) expect(kernel.device.reply([message])).toBe(0);
    daemon.device.resumeReading();
    await vi.waitFor(() => expect(daemon.messages()).toHaveLength(200), patiently);
    expect(daemon.messages()).toEqual(sent);
    expect(daemon.wakes.length).toBeGreaterThan(1);
    expect(Math.max(...daemon.wakes.map((wake) => wake.length))).toBeLessThanOrEqual(64);
  });

  it("keeps earlier messages unchanged while later ones arrive", async () => {
    const { daemon, kernel } = pair();
    daemon.device.resumeReading();
    const sent: Buffer[] = [];
    for (let round = 0; round < 60; round++) {
      // 5,000 bytes: the slab is full after some, and several slabs are alive at once.
      const batch = [1, 2, 3].map((i) => Buffer.alloc(5000, round * 3 + i));
      for (const message of batch) expect(kernel.device.reply([message])).toBe(0);
      sent.push(...batch);
      await vi.waitFor(() => expect(daemon.messages().length).toBe(sent.length), { ...patiently, interval: 1 });
    }
    expect(daemon.messages().every((message, i) => message.equals(sent[i] ?? Buffer.alloc(0)))).toBe(true);
  });

  it.each([1, 40, 8191, 8192, 8193, 100_000])("hands out a message of %i bytes as it was sent", async (length) => {
    const { daemon, kernel } = pair();
    daemon.device.resumeReading();
    const sent = Buffer.from(Array.from({ length }, (_, i) => i % 251));
    expect(kernel.device.reply([sent])).toBe(0);
    expect(kernel.device.reply([Buffer.from("next")])).toBe(0);
    await vi.waitFor(() => expect(daemon.messages()).toHaveLength(2), patiently);
    expect(daemon.messages()[0]?.equals(sent)).toBe(true);
    expect(daemon.messages()[1]?.toString()).toBe("next");
  });

  it.skipIf(!fits(DEVICE_BUFFER_SIZE))("hands out messages of 1 MiB and more (as root)", async () => {
    const { daemon, kernel } = pair();
    daemon.device.resumeReading();
    for (let i = 0; i < 20; i++) {
      expect(kernel.device.reply([Buffer.alloc(80, 255), Buffer.alloc(1024 * 1024, i)])).toBe(0);
      await vi.waitFor(() => expect(daemon.messages().length).toBe(i + 1), { ...patiently, interval: 1 });
    }
    for (const [i, message] of daemon.messages().entries()) {
      expect(message.length).toBe(1024 * 1024 + 80);
      expect(message.subarray(80).equals(Buffer.alloc(1024 * 1024, i))).toBe(true);
    }
  });

  it("reads nothing before the first resume and nothing while paused", async () => {
    const { daemon, kernel } = pair();
    kernel.device.resumeReading();
    expect(kernel.device.reply([Buffer.from("one")])).toBe(0);
    // An answer the other way has come by: the loop has been round.
    expect(daemon.device.reply([Buffer.from("marker")])).toBe(0);
    await vi.waitFor(() => expect(kernel.messages()).toHaveLength(1), patiently);
    expect(daemon.messages()).toHaveLength(0);
    daemon.device.resumeReading();
    await vi.waitFor(() => expect(daemon.messages()).toHaveLength(1), patiently);
    daemon.device.pauseReading();
    expect(kernel.device.reply([Buffer.from("two")])).toBe(0);
    expect(daemon.device.reply([Buffer.from("marker")])).toBe(0);
    await vi.waitFor(() => expect(kernel.messages()).toHaveLength(2), patiently);
    expect(daemon.messages()).toHaveLength(1);
    daemon.device.resumeReading();
    await vi.waitFor(() => expect(daemon.messages().map(String)).toEqual(["one", "two"]), patiently);
  });

  it("delivers what came before the other end closed, then says ENODEV once", async () => {
    const { daemon, kernel } = pair();
    expect(kernel.device.reply([Buffer.from("last")])).toBe(0);
    kernel.device.close();
    daemon.device.resumeReading();
    await vi.waitFor(() => expect(daemon.ends).toEqual(["ENODEV"]), patiently);
    expect(daemon.messages().map(String)).toEqual(["last"]);
    daemon.device.resumeReading();
    await new Promise((resolve) => setImmediate(resolve));
    expect(daemon.ends).toEqual(["ENODEV"]);
  });

  it("may be closed from inside a callback, and calls nothing after that", async () => {
    const [first, second] = socketPair("seqpacket");
    const kernel = end(second);
    let calls = 0;
    const device = openDevice(
      first,
      DEVICE_BUFFER_SIZE,
      () => {
        calls++;
        device.close();
      },
      () => calls++,
    );
    for (let i = 0; i < 100; i++) kernel.device.reply([Buffer.from("x")]);
    device.resumeReading();
    kernel.device.resumeReading();
    await vi.waitFor(() => expect(kernel.ends).toHaveLength(1), patiently);
    expect(calls).toBe(1);
    expect(device.reply([Buffer.from("x")])).toBe(9);
    expect(await device.notify("entry", Buffer.from("x"))).toBe(125);
  });

  it("refuses a descriptor that is not open with a system error", () => {
    expect(() =>
      openDevice(
        9999,
        DEVICE_BUFFER_SIZE,
        () => {},
        () => {},
      ),
    ).toThrow(expect.objectContaining({ code: "EBADF" }));
  });
});

describe("replying", () => {
  it("writes the parts as one message", async () => {
    const { daemon, kernel } = pair();
    kernel.device.resumeReading();
    const parts = [Buffer.from("head"), new Uint8Array([1, 2, 3]), Buffer.alloc(0), Buffer.from("tail")];
    expect(daemon.device.reply(parts)).toBe(0);
    expect(daemon.device.reply([Buffer.from("second")])).toBe(0);
    await vi.waitFor(() => expect(kernel.messages()).toHaveLength(2), patiently);
    expect(kernel.messages()[0]?.toString("latin1")).toBe("head\u0001\u0002\u0003tail");
    expect(kernel.messages()[1]?.toString()).toBe("second");
  });

  it("answers an errno, and throws nothing, when the other end is gone", () => {
    const { daemon, kernel } = pair();
    kernel.device.close();
    expect(daemon.device.reply([Buffer.from("x")])).toBe(32);
  });

  it("refuses what are no bytes", () => {
    const { daemon } = pair();
    expect(() => daemon.device.reply(["text" as unknown as Uint8Array])).toThrow(TypeError);
  });
});

describe("notifying", () => {
  it("keeps the order of a queue and answers each promise", async () => {
    const { daemon, kernel } = pair();
    kernel.device.resumeReading();
    const results = await Promise.all(
      numbered(100).map((message, i) => daemon.device.notify(i % 2 === 0 ? "entry" : "inode", message)),
    );
    expect(results.every((result) => result === 0)).toBe(true);
    await vi.waitFor(() => expect(kernel.messages()).toHaveLength(100), patiently);
    const order = kernel.messages().map((message) => Number(message.toString().split(" ")[1]));
    expect(order.filter((i) => i % 2 === 0)).toEqual(Array.from({ length: 50 }, (_, i) => 2 * i));
    expect(order.filter((i) => i % 2 === 1)).toEqual(Array.from({ length: 50 }, (_, i) => 2 * i + 1));
  });

  it("reaches the kernel while JavaScript is blocked", async () => {
    // A second process reads and answers; this one blocks in a read that only the notification ends.
    const [mine, theirs] = socketPair("seqpacket");
    const echo = spawn("cat", [], { stdio: [theirs, theirs, "inherit"] });
    closeSync(theirs);
    closing.push(() => echo.kill("SIGKILL"));
    const { daemon, kernel } = pair();
    const result = daemon.device.notify("inode", Buffer.from("drop pages"));
    // JavaScript does not get back to the event loop before the notification has arrived.
    const buffer = Buffer.alloc(100);
    let length = 0;
    for (const end = performance.now() + patiently.timeout; length === 0 && performance.now() < end; ) {
      writeSync(mine, "tick"); // a round trip through another process: time passes, the loop does not run
      readSync(mine, Buffer.alloc(16));
      try {
        length = readSync(kernel.fd, buffer);
      } catch (error) {
        expect(error).toMatchObject({ code: "EAGAIN" });
      }
    }
    closeSync(mine);
    expect(buffer.toString("utf8", 0, length)).toBe("drop pages");
    expect(await result).toBe(0);
    await ended(echo);
  });

  it("writes several that come together one by one, each as long as it says", async () => {
    const { daemon, kernel } = pair();
    kernel.device.resumeReading();
    const framed = (text: string) => {
      const bytes = Buffer.from(`....${text}`);
      bytes.writeUInt32LE(bytes.length);
      return bytes;
    };
    const texts = Array.from({ length: 300 }, (_, i) => `number ${i}`);
    expect(await daemon.device.notify("inode", Buffer.concat(texts.map(framed)))).toBe(0);
    await vi.waitFor(() => expect(kernel.messages()).toHaveLength(300), patiently);
    expect(kernel.messages().map((message) => message.toString("utf8", 4))).toEqual(texts);
  });

  it("answers the errno of the write", async () => {
    const { daemon, kernel } = pair();
    kernel.device.close();
    expect(await daemon.device.notify("entry", Buffer.from("x"))).toBe(32);
  });

  it("settles every promise when the device is closed", async () => {
    const { daemon } = pair();
    const results = Promise.all(numbered(500).map((message) => daemon.device.notify("entry", message)));
    daemon.device.close();
    for (const result of await results) expect([0, 11, 125]).toContain(result);
  });
});

describe("closing", () => {
  it("closes the descriptor at once when no notification is under way", () => {
    const { daemon } = pair();
    const before = readlinkSync(`/proc/self/fd/${daemon.fd}`);
    daemon.device.close();
    let after = "";
    try {
      after = readlinkSync(`/proc/self/fd/${daemon.fd}`);
    } catch {}
    expect(after).not.toBe(before);
  });

  it("lets the process end: neither an open nor a closed device hangs it at exit", async () => {
    const script = `
      const addon = require(${JSON.stringify(addonPath)});
      const [a, b] = addon.socketPair(0);
      const one = addon.openDevice(a, 1 << 20, () => {}, () => {});
      const two = addon.openDevice(b, 1 << 20, () => {}, () => {});
      addon.deviceResume(one);
      addon.deviceNotify(two, 0, Buffer.from("x")).then(() => {
        addon.deviceClose(two);
        process.exitCode = 7;
        if (process.argv[1] === "at once") process.exit();
        addon.deviceClose(one);
      });`;
    for (const how of ["at once", "by itself"]) {
      expect(await ended(spawn(process.execPath, ["-e", script, how]))).toBe(7);
    }
  });

  it("lets a worker thread end that still has devices open", async () => {
    const script = `
      const { Worker } = require("node:worker_threads");
      const addonPath = ${JSON.stringify(addonPath)};
      const worker = new Worker(\`
        const { parentPort } = require("node:worker_threads");
        const addon = require(\${JSON.stringify(addonPath)});
        const [a, b] = addon.socketPair(0);
        const one = addon.openDevice(a, 1 << 20, () => {}, () => {});
        const two = addon.openDevice(b, 1 << 20, () => {}, () => {});
        addon.deviceResume(one);
        addon.openControl(addon.socketPair(0)[0], () => {}, () => {});
        for (let i = 0; i < 1000; i++) addon.deviceNotify(two, i % 2, Buffer.alloc(1000));
        parentPort.postMessage("open");\`, { eval: true });
      worker.on("message", () => worker.terminate());
      worker.on("exit", () => process.exit(7));`;
    expect(await ended(spawn(process.execPath, ["-e", script], { stdio: "inherit" }))).toBe(7);
  });
});

describe("descriptors over the control socket", () => {
  it("come with their line, close-on-exec, as the same open file", async () => {
    const [first, second] = socketPair("seqpacket");
    const folder = mkdtempSync(join(tmpdir(), "wsfs-native-"));
    closing.push(() => rmSync(folder, { recursive: true }));
    const file = openSync(join(folder, "file"), "w+");
    const got: [string, number | undefined][] = [];
    let over = false;
    const sender = openControl(
      first,
      () => {},
      () => {},
    );
    const receiver = openControl(
      second,
      (line, descriptor) => got.push([line, descriptor]),
      () => {
        over = true;
      },
    );
    closing.push(() => receiver.close());
    expect(sender.send("plain")).toBe(0);
    expect(sender.send("mounted 42", file)).toBe(0);
    await vi.waitFor(() => expect(got).toHaveLength(2), patiently);
    expect(got[0]).toEqual(["plain", undefined]);
    expect(got[1]?.[0]).toBe("mounted 42");
    const received = got[1]?.[1] ?? -1;
    expect(received).not.toBe(file);
    expect(fstatSync(received).ino).toBe(fstatSync(file).ino);
    closeSync(received);
    closeSync(file);
    sender.close();
    await vi.waitFor(() => expect(over).toBe(true), patiently);
    expect(receiver.send("into the void")).toBe(32);
  });

  it("are received by a blocking call too", () => {
    const [first, second] = socketPair("seqpacket");
    const sender = openControl(
      first,
      () => {},
      () => {},
    );
    expect(sender.send("line", second)).toBe(0);
    const received = receiveDescriptor(second);
    expect(received?.line).toBe("line");
    expect(received?.descriptor).toBeTypeOf("number");
    closeSync(received?.descriptor ?? -1);
    sender.close();
    expect(receiveDescriptor(second)).toBeUndefined();
    closeSync(second);
  });
});

describe("what only a mounted device has", () => {
  it("is refused by other descriptors with an errno", () => {
    const [first, second] = socketPair("stream");
    expect(backingOpen(first, second)).toBeLessThan(0);
    expect(backingClose(first, 1)).toBeLessThan(0);
    expect(connectionNumber(first)).toBeUndefined();
    closeSync(first);
    closeSync(second);
    expect(() => connectionNumber(9999)).toThrow(expect.objectContaining({ code: "EBADF" }));
  });
});

async function ended(child: ChildProcess): Promise<number | null> {
  if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
  const timer = setTimeout(() => child.kill("SIGKILL"), 20_000);
  const [code] = await once(child, "exit");
  clearTimeout(timer);
  return code;
}

describe("the control socket", () => {
  it("has the last lines of an end that was closed with lines unread", async () => {
    const [mine, theirs] = socketPair("seqpacket");
    const lines: string[] = [];
    const ended = new Promise<void>((resolve) => {
      const control = openControl(mine, (line) => lines.push(line), resolve);
      closing.push(() => control.close());
      control.send("never read");
    });
    const other = openControl(
      theirs,
      () => {},
      () => {},
    );
    other.send("the last word");
    other.close();
    await ended;
    expect(lines).toEqual(["the last word"]);
  });

  it("says of an end that was closed with lines unread what it says of any that is gone", async () => {
    const [mine, theirs] = socketPair("seqpacket");
    const ended = new Promise<void>((resolve) => {
      const control = openControl(mine, () => {}, resolve);
      closing.push(() => control.close());
      expect(control.send("never read")).toBe(0);
      closeSync(theirs);
      expect([control.send("a word"), control.send("another")]).toEqual([32, 32]);
    });
    await ended;
  });
});
