/**
 * The transport of requests and replies: /dev/fuse by the addon (`native.ts`), a socket or plain calls in tests. It
 * moves whole messages and does not know their content.
 */

export interface Device {
  /**
   * Sends one reply or notification, made of these parts. The parts may be reused when it returns. Returns 0, or the
   * errno with which the kernel refused it.
   */
  reply(parts: Uint8Array[]): number;
  /** Answers a READ with bytes of a local file, without copies of them. False: it was not answered. See native.ts. */
  answerRead?(unique: number, descriptor: number, offset: number, size: number): boolean;
  /** The numbers of requests that the device answered by itself, by opcode name. */
  moved?(): Readonly<Record<string, number>>;
  /** No request comes after this. Closing twice is no error. */
  close(): void;
}

/**
 * Messages as they came, one per buffer, oldest first. They belong to the receiver: the device neither changes nor
 * reuses their memory.
 */
type OnRequests = (messages: Uint8Array[]) => void;

/**
 * No request will come any more. The errno name is ENODEV (unmounted), ECONNABORTED (aborted), or that of a failure.
 */
type OnEnd = (errnoName: string) => void;

/** Starts the flow of requests. Never calls back before it has returned. */
export type OpenDevice = (onRequests: OnRequests, onEnd: OnEnd) => Device;
