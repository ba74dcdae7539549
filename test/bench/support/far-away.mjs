/**
 * Makes a server far away: `far-away.mjs PORT MILLISECONDS [BYTES-PER-SECOND]` hands on to 127.0.0.1:PORT what it is sent, at
 * once, and what comes back so much later, each way no faster than the rate (0: as fast as it can). All connections share the
 * line. Prints the port it listens on.
 */
import { connect, createServer } from "node:net";

const [port, latency, rate = 0] = process.argv.slice(2).map(Number);

/** Of bytes that wait for their turn on a narrow line, no more are taken in than go out in this time. */
const QUEUE_MS = 50;

/** One direction of the line. */
function way(milliseconds) {
  let freeAt = 0;
  return {
    /** How long from now until so many more bytes have gone out, and how long until those before them have. */
    take(bytes) {
      const now = performance.now();
      const waits = Math.max(0, freeAt - now);
      freeAt = now + waits + (rate > 0 ? (bytes / rate) * 1000 : 0);
      return { waits, arrives: freeAt - now + milliseconds };
    },
  };
}

/** Bytes in a row keep their order: none arrives before those that came earlier. */
function handOn(from, to, { take }) {
  let due = 0;
  const later = (milliseconds, what) => {
    due = Math.max(due, performance.now() + milliseconds);
    const wait = Math.ceil(due - performance.now());
    if (wait <= 0) what();
    else setTimeout(what, wait);
  };
  from.setNoDelay(true);
  from.on("data", (bytes) => {
    const { waits, arrives } = take(bytes.length);
    later(arrives, () => to.write(bytes));
    if (waits <= QUEUE_MS) return;
    from.pause();
    setTimeout(() => from.resume(), waits - QUEUE_MS);
  });
  from.on("end", () => later(take(0).arrives, () => to.end()));
  from.on("error", () => to.destroy());
}

const there = way(0);
const back = way(latency);
const server = createServer({ allowHalfOpen: true }, (near) => {
  const far = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  handOn(near, far, there);
  handOn(far, near, back);
});
server.listen(0, "127.0.0.1", () => process.stdout.write(`port ${server.address().port}\n`));
