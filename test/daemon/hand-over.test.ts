/** A daemon that gives way: what is the end of its mount, and what is left to the one after it. */
import { expect, it } from "vitest";
import { createHandOver, type Served } from "../../src/daemon/hand-over.ts";
import { SILENT } from "../../src/lib/log.ts";
import { SETTINGS } from "./settings.ts";

const [EAGAIN, EPIPE] = [11, 32];
const SERVED: Served = {
  hushKernel: async () => {},
  unhushKernel() {},
  pause() {},
  drained: async () => {},
  resend: true,
  forgive() {},
  leave: async (quiet) => void (await quiet()),
};
const REQUEST = { id: "7a6b8d4e-54a4-4c54-9d5b-0b3f7c9a1f10", settings: SETTINGS, program: ["true"] };

it.each([
  ["taken", 0, false, true],
  ["not taken by a supervisor that lives: it takes the end for a death, and starts a successor", EAGAIN, false, true],
  ["for nobody: there is no supervisor any more", EPIPE, true, false],
] as const)("leaves what is open to a successor where the last word is %s", async (_, errno, isGone, isLeft) => {
  const handOver = createHandOver(SETTINGS, SERVED, () => true, SILENT);
  await handOver.prepare(REQUEST);
  handOver.begin();
  expect(await handOver.begun).toBe("handOver");
  await handOver.rest();
  const said: string[] = [];
  const reload = async (tag: string) => {
    said.push(tag);
    return errno;
  };
  expect(await handOver.tell({ reload, isGone: () => isGone })).toBe(isLeft);
  expect(said).toEqual([expect.stringMatching(/^7a6b8d4e-.*:\d+$/)]);
});
