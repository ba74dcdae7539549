import { expect, it } from "vitest";
import { type OpenLineSocket, openSupervisorLink } from "../../src/daemon/supervisor-link.ts";
import { SILENT } from "../../src/lib/log.ts";

const EPIPE = 32;

function linked() {
  const sent: string[] = [];
  let say: (line: string, descriptor?: number) => void = () => {};
  let leave: () => void = () => {};
  const link = openSupervisorLink((onLine, onEnd) => {
    say = (line, descriptor) => onLine(line, descriptor);
    leave = onEnd;
    return { send: (line) => Math.min(0, sent.push(line)), close() {} };
  }, SILENT);
  return { link, sent, say: (line: string, descriptor?: number) => say(line, descriptor), leave: () => leave() };
}

it("gets the mount's number and descriptor for saying that it is prepared", async () => {
  const { link, sent, say } = linked();
  const mounted = link.prepared();
  say("mounted 39\n", 12);
  expect(await mounted).toEqual({ connection: 39, descriptor: 12 });
  link.ready();
  link.heartbeat();
  link.note("of\ninterest");
  link.failed(1, "two\nlines");
  expect(sent).toEqual(["prepared", "ready", "heartbeat", "note of interest", "failed 1 two lines"]);
});

it("gets no mount without a descriptor, after a stop, or when the supervisor is gone", async () => {
  const without = linked();
  without.say("mounted 39");
  await expect(without.link.prepared()).rejects.toThrow("no descriptor");
  const stopped = linked();
  stopped.say("stop");
  await expect(stopped.link.prepared()).rejects.toThrow("told to stop");
  const gone = linked();
  gone.leave();
  await expect(gone.link.prepared()).rejects.toThrow("gone");
  expect(gone.link.isGone()).toBe(true);
});

it("asks once for an unmount two callers want, and again after it was busy", async () => {
  const { link, sent, say } = linked();
  const [first, second] = [link.unmount(), link.unmount()];
  say("busy Device or resource busy");
  const busy = { busy: "Device or resource busy" };
  expect(await Promise.all([first, second])).toEqual([busy, busy]);
  const third = link.unmount();
  say("unmounted");
  expect(await third).toEqual({ isOver: true });
  expect(sent).toEqual(["unmount", "unmount"]);
  expect(await link.ending).toBe("unmounted");
});

it("hears that a copy of the mount is left elsewhere", async () => {
  const { link, say } = linked();
  const unmounted = link.unmount();
  say("unmounted elsewhere");
  expect(await unmounted).toEqual({ isOver: false });
  expect(await link.ending).toBe("unmounted");
});

it("does not wait for an answer of a supervisor that is gone", async () => {
  const { link, leave } = linked();
  const unmounted = link.unmount();
  leave();
  await expect(unmounted).rejects.toThrow("gone");
  expect(await link.ending).toBe("gone");
});

it("does not mind a word of a later release", () => {
  const { say } = linked();
  expect(() => say("reload now")).not.toThrow();
});

/** One after the other; those in `gone` take no word. */
function several(takesOver: boolean) {
  const sent: string[][] = [];
  const leave: (() => void)[] = [];
  let say: (line: string, descriptor?: number) => void = () => {};
  const gone = new Set<number>();
  const open: OpenLineSocket = (onLine, onEnd) => {
    const index = sent.push([]) - 1;
    leave.push(onEnd);
    say = (line, descriptor) => onLine(line, descriptor);
    const send = (line: string) => (gone.has(index) ? EPIPE : Math.min(0, sent[index]?.push(line) ?? 0));
    return { send, close() {} };
  };
  const link = openSupervisorLink(open, SILENT, takesOver);
  return { link, open, sent, leave, gone, say: (line: string, descriptor?: number) => say(line, descriptor) };
}

it("of a daemon that takes over, replaces a supervisor that went before it could be", async () => {
  const { link, open, sent, leave, say } = several(true);
  say("mounted 39", 12);
  leave[0]?.();
  expect(await link.prepared()).toEqual({ connection: 39, descriptor: 12 });
  expect(link.isGone()).toBe(true);
  link.replaceWith(() => open);
  expect(link.isGone()).toBe(false);
  link.ready();
  expect(sent[1]).toEqual(["ready"]);
});

it("says its last word to the next supervisor when the one that was asked has just died", async () => {
  const { link, open, sent, leave, gone } = several(false);
  link.replaceWith(() => open);
  gone.add(0);
  const said = link.reload("tag", "{}", ["node", "a b"]);
  leave[0]?.();
  expect(await said).toBe(0);
  expect(sent).toEqual([[], ["reload tag {}\x1fnode\x1fa b"]]);
});
