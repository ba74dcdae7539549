/** What is agreed on with the kernel about passthrough, and the ids of files it was given. */
import { describe, expect, it } from "vitest";
import { backingId } from "../../src/engine/api/index.ts";
import { ERRNO } from "../../src/fuse/errno.ts";
import { INIT } from "../../src/fuse/flags.ts";
import { type InitRequest, negotiate } from "../../src/fuse/init.ts";
import { createPassthrough } from "../../src/fuse/passthrough.ts";
import { SILENT } from "../../src/lib/log.ts";

const PASSTHROUGH = 1 << 5;
const OFFERED: InitRequest = {
  major: 7,
  minor: 45,
  max_readahead: 131072,
  flags: 0x73fffffb,
  flags2: 0x5fd,
};

function agreed(request: Partial<InitRequest>, stackDepth: 0 | 1 | 2) {
  const outcome = negotiate({ ...OFFERED, ...request }, { stackDepth });
  if (outcome.kind !== "agreed") throw new Error(outcome.kind);
  const { flags2, max_stack_depth } = outcome.reply;
  return { passthrough: outcome.connection.passthrough, flags2, max_stack_depth };
}

describe("INIT", () => {
  const none = { passthrough: false, flags2: 0, max_stack_depth: 0 };

  it("asks for passthrough where it is offered and wanted", () => {
    expect(agreed({}, 1)).toEqual({ passthrough: true, flags2: PASSTHROUGH, max_stack_depth: 1 });
    expect(agreed({}, 2)).toEqual({ passthrough: true, flags2: PASSTHROUGH, max_stack_depth: 2 });
    expect(agreed({}, 0)).toEqual(none);
  });

  it("does without on kernels that do not offer it, or know no second word", () => {
    expect(agreed({ flags2: 0x5fd & ~PASSTHROUGH }, 1)).toEqual(none);
    expect(agreed({ flags: OFFERED.flags & ~INIT.INIT_EXT }, 1)).toEqual(none);
  });
});

describe("files given to the kernel", () => {
  function kernel(answers: number[]) {
    const calls: [string, number, number][] = [];
    const backingOpen = (device: number, descriptor: number) => {
      calls.push(["open", device, descriptor]);
      return answers.shift() ?? 0;
    };
    const backingClose = (device: number, id: number) => {
      calls.push(["close", device, id]);
      return 0;
    };
    return { calls, passthrough: createPassthrough({ backingOpen, backingClose }, SILENT, true) };
  }

  it("are those of a device in use", () => {
    const { calls, passthrough } = kernel([4, 5]);
    expect([passthrough.isOn, passthrough.register(30)]).toEqual([false, undefined]);
    passthrough.use(9);
    expect([passthrough.isOn, passthrough.register(31)]).toEqual([true, 4]);
    passthrough.unregister(backingId(4));
    passthrough.close();
    expect([passthrough.isOn, passthrough.register(32)]).toEqual([false, undefined]);
    expect(calls).toEqual([
      ["open", 9, 31],
      ["close", 9, 4],
    ]);
  });

  it("are no more once the kernel has refused for all of them", () => {
    for (const errno of [ERRNO.EPERM, ERRNO.ELOOP]) {
      const { calls, passthrough } = kernel([-errno, 4]);
      passthrough.use(9);
      expect([passthrough.register(30), passthrough.isOn, passthrough.register(31)]).toEqual([
        undefined,
        false,
        undefined,
      ]);
      expect(calls).toHaveLength(1);
      expect(passthrough.whyOff).toBe(
        errno === ERRNO.EPERM
          ? "the kernel allows it to root alone (CAP_SYS_ADMIN)"
          : "the state dir is on too many file systems that lie on each other",
      );
    }
  });

  it("may be refused one by one", () => {
    const { passthrough } = kernel([-ERRNO.ENOMEM, 4]);
    passthrough.use(9);
    expect([passthrough.register(30), passthrough.register(31)]).toEqual([undefined, 4]);
  });
});
