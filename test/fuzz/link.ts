/** The daemon's end of the control socket: whatever its supervisor says, nothing is thrown, and it can be ended. */
import fc from "fast-check";
import { openSupervisorLink } from "../../src/daemon/supervisor-link.ts";
import { SILENT } from "../../src/lib/log.ts";
import type { Effort } from "./targets.ts";

const WORDS = ["mounted", "stop", "unmounted", "busy", "elsewhere", "39", "-1", "\n", " ", "", "\u0000", "\u{1f600}"];
const GONE = 32;

const line = fc
  .array(fc.oneof(fc.constantFrom(...WORDS), fc.string({ unit: "binary" })), { maxLength: 6 })
  .map((words) => words.join(" "));
const event = fc.oneof(
  fc.record({ what: fc.constant("line" as const), line, descriptor: fc.option(fc.nat(20), { nil: undefined }) }),
  fc.record({ what: fc.constantFrom("end", "prepared", "ready", "unmount", "note", "replace") }),
);

export function fuzzLink({ seconds, seed }: Effort): string {
  let runs = 0;
  const property = fc.property(fc.array(event, { maxLength: 20 }), fc.boolean(), (events, takesOver) => {
    runs++;
    const sent: string[] = [];
    let say: (line: string, descriptor: number | undefined) => void = () => {};
    let leave = () => {};
    const open = (onLine: typeof say, onEnd: () => void) => {
      say = onLine;
      leave = onEnd;
      return { send: (text: string) => (sent.push(text) % 5 === 0 ? GONE : 0), close() {} };
    };
    const link = openSupervisorLink(open, SILENT, takesOver);
    const quietly = (promise: Promise<unknown>) => void promise.catch(() => {});
    for (const one of events) {
      if ("line" in one) say(one.line, one.descriptor);
      else if (one.what === "end") leave();
      else if (one.what === "prepared") quietly(link.prepared());
      else if (one.what === "ready") link.ready();
      else if (one.what === "unmount") quietly(link.unmount());
      else if (one.what === "note") link.note("two\nlines");
      else link.replaceWith(() => undefined);
    }
    quietly(link.prepared());
    link.close();
    // One message is one line, and of a length that the other end takes.
    return sent.every((text) => !text.includes("\n") && text.length <= 2000);
  });
  fc.assert(property, { seed, numRuns: 1e9, interruptAfterTimeLimit: seconds * 1000, markInterruptAsFailure: false });
  return `${runs} conversations`;
}
