/**
 * Makes a server far away: `far-away.mjs PORT MILLISECONDS` hands on to 127.0.0.1:PORT what it is sent, at once, and what
 * comes back so much later. Prints the port it listens on.
 */
import { connect, createServer } from "node:net";

const [port, latency] = process.argv.slice(2).map(Number);

/** Bytes in a row keep their order: timers of the same length fire as they were set. */
function handOn(from, to, milliseconds) {
  const later = (what) => (milliseconds === 0 ? what() : setTimeout(what, milliseconds));
  from.setNoDelay(true);
  from.on("data", (bytes) => later(() => to.write(bytes)));
  from.on("end", () => later(() => to.end()));
  from.on("error", () => to.destroy());
}

const server = createServer({ allowHalfOpen: true }, (near) => {
  const far = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  handOn(near, far, 0);
  handOn(far, near, latency);
});
server.listen(0, "127.0.0.1", () => process.stdout.write(`port ${server.address().port}\n`));
