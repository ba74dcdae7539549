/**
 * Batches messages to another thread, because handing over a batch costs as much as a dozen messages in it. A batch
 * goes when the present work is done. A large one goes at once, because the other thread may be idle.
 */
import type { MessagePort, Worker } from "node:worker_threads";

const MANY = 16;

/** Posts a message. `own`: memory of the message, which moves to the other thread and cannot be used here any more. */
export type Post<Message> = (message: Message, own?: ArrayBuffer) => void;

export function createOutbox<Message>(port: Pick<MessagePort | Worker, "postMessage">): Post<Message> {
  let messages: Message[] = [];
  let handedOver: ArrayBuffer[] = [];
  let isPlanned = false;

  function handOver(): void {
    isPlanned = false;
    if (messages.length === 0) return;
    const batch = messages;
    const own = handedOver;
    messages = [];
    handedOver = [];
    port.postMessage(batch, own);
  }

  return (message, own) => {
    messages.push(message);
    if (own !== undefined) handedOver.push(own);
    if (messages.length >= MANY) handOver();
    else if (!isPlanned) {
      isPlanned = true;
      setImmediate(handOver);
    }
  };
}
