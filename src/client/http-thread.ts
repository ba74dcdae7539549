/**
 * The program of the thread for small changes: it sends them over HTTP and reports their answers. thread-transport.ts
 * starts it and explains its purpose.
 */
import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import { createHttpTransport } from "./http-transport.ts";
import { createOutbox } from "./outbox.ts";
import {
  type CarriedRequest,
  FORMAT,
  type FromThread,
  packError,
  requestOf,
  type ThreadOptions,
  type ToThread,
} from "./thread-messages.ts";
import { CHANGE_BYTES_MAX, joined, readWhole } from "./whole-body.ts";

if (parentPort === null) throw new Error("client/http-thread is the program of a thread");
serve(parentPort, workerData as ThreadOptions);

function serve(port: MessagePort, { format, ...options }: ThreadOptions): void {
  if (format !== FORMAT) throw new Error(`this thread is of another build: it speaks format ${FORMAT}, not ${format}`);
  const transport = createHttpTransport(options);
  const post = createOutbox<FromThread>(port);
  const underWay = new Map<number, { readonly abort: AbortController; readonly done: Promise<void> }>();

  async function carry(id: number, request: CarriedRequest, signal: AbortSignal): Promise<void> {
    try {
      const { status, headers, body } = await transport.send({ ...requestOf(request), signal });
      const { chunks, failure } = await readWhole(body, CHANGE_BYTES_MAX);
      const content = joined(chunks);
      // The status shows the outcome of the request even when the rest of the answer does not arrive.
      const broken = failure === undefined ? {} : { broken: packError(failure.error) };
      post({ tell: "answer", id, answer: { status, headers, content, ...broken } }, content.buffer);
    } catch (error) {
      post({ tell: "failure", id, error: packError(error) });
    } finally {
      underWay.delete(id);
    }
  }

  async function close(): Promise<void> {
    await transport.close();
    await Promise.all(Array.from(underWay.values(), ({ done }) => done));
    post({ tell: "closed" });
    // Exits once the message is handed over. Without exit() the thread would wait for name lookups under way, whose
    // results nothing needs.
    setImmediate(() => process.exit());
  }

  function hear(message: ToThread): void {
    if (message.tell === "close") void close();
    else if (message.tell === "abort") underWay.get(message.id)?.abort.abort();
    else {
      const abort = new AbortController();
      underWay.set(message.id, { abort, done: carry(message.id, message.request, abort.signal) });
    }
  }

  port.on("message", (batch: readonly ToThread[]) => {
    for (const message of batch) hear(message);
  });
}
