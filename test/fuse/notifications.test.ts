/** Notifications, byte for byte as fuse-protocol.md §3.5 has them. */
import { expect, it } from "vitest";
import * as notifications from "../../src/fuse/notifications.ts";
import { kernelNodeId } from "../../src/metadata/ids.ts";
import { bytesOf, type Part } from "./fake-kernel.ts";

const { notifyDelete, notifyIncEpoch, notifyInvalEntry, notifyInvalInode, notifyPoll } = notifications;
const { notifyPrune, notifyResend, notifyRetrieve, notifyStore } = notifications;

it.each<[string, Uint8Array[], number, Part[]]>([
  ["POLL", notifyPoll(7), 1, [7n]],
  ["INVAL_INODE of a range", notifyInvalInode(kernelNodeId(5), 4096, 8192), 2, [5n, 4096n, 8192n]],
  ["INVAL_INODE of attributes", notifyInvalInode(kernelNodeId(5), -1, 0), 2, [5n, -1n, 0n]],
  ["INVAL_ENTRY", notifyInvalEntry(kernelNodeId(5), "ä", false), 3, [5n, 2, 0, "ä"]],
  ["INVAL_ENTRY that only expires", notifyInvalEntry(kernelNodeId(5), "ab", true), 3, [5n, 2, 1, "ab"]],
  ["STORE", notifyStore(kernelNodeId(5), 2 ** 40, Buffer.from("data")), 4, [5n, 2n ** 40n, 4, 0, Buffer.from("data")]],
  ["RETRIEVE", notifyRetrieve(99, kernelNodeId(5), 2 ** 40, 4096), 5, [99n, 5n, 2n ** 40n, 4096, 0]],
  ["DELETE", notifyDelete(kernelNodeId(5), kernelNodeId(6), "ab"), 6, [5n, 6n, 2, 0, "ab"]],
  ["RESEND", notifyResend(), 7, []],
  ["INC_EPOCH", notifyIncEpoch(), 8, []],
  ["PRUNE", notifyPrune([kernelNodeId(5), kernelNodeId(2 ** 40)]), 9, [2, 0, 0n, 5n, 2n ** 40n]],
])("%s", (_, parts, code, body) => {
  const expected = bytesOf(...body);
  const whole = bytesOf(16 + expected.length, code, 0n, expected);
  expect(Buffer.concat(parts).toString("hex")).toBe(whole.toString("hex"));
});
