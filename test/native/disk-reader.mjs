/**
 * Asks for a file's bytes over a socket pair, one READ after the other, and says of each who answered it.
 *
 *   node disk-reader.mjs ADDON FILE
 *
 * A line of the standard input is one READ: its size, and how long to wait before it, in milliseconds. For each a line is
 * printed: "device", or "JavaScript" where the addon left it to that.
 */
import { openSync } from "node:fs";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { setTimeout } from "node:timers/promises";

const [addonPath, path] = process.argv.slice(2);
const addon = createRequire(import.meta.url)(addonPath);
const BUFFER_SIZE = 1024 * 1024 + 4096;
const READ = 15;
const HANDLE = 7n;

let told;
const [first, second] = addon.socketPair(0);
const side = (fd, who) => {
  const device = addon.openDevice(
    fd,
    BUFFER_SIZE,
    () => told(who),
    () => {},
  );
  addon.deviceResume(device);
  return device;
};
const daemon = side(first, "JavaScript");
const kernel = side(second, "device");
addon.deviceGrantRead(daemon, Number(HANDLE), openSync(path, "r"));

let unique = 0n;
function ask(size) {
  const message = Buffer.alloc(80);
  unique += 2n;
  message.writeUInt32LE(message.length, 0);
  message.writeUInt32LE(READ, 4);
  message.writeBigUInt64LE(unique, 8);
  message.writeBigUInt64LE(HANDLE, 40);
  message.writeUInt32LE(size, 56);
  return new Promise((resolve) => {
    told = resolve;
    addon.deviceReply(kernel, [message]);
  });
}

for await (const line of createInterface({ input: process.stdin })) {
  const [size, wait] = line.split(" ").map(Number);
  await setTimeout(wait);
  console.log(await ask(size));
}
addon.deviceClose(daemon);
addon.deviceClose(kernel);
