/** The workspace's quota. The interface; sync/quota.ts implements it. */
import type { Excess } from "../../client/errors.ts";
import type { AttemptId, NodeRowId } from "../../metadata/ids.ts";

export interface Quota {
  /** Bytes that the workspace may hold; undefined: no limit, as far as is known. */
  readonly limit: number | undefined;
  /** Bytes that the gateway holds. */
  readonly used: number;
  /**
   * Bytes by which the workspace will grow when everything is sent, as of now or a moment ago. Negative: it shrinks.
   */
  waiting(): number;
  /**
   * Sums the bytes of `waiting` now, with those that programs are writing. Rejects when the rows cannot be read,
   * or with the error of the disk when an open file cannot be looked at.
   */
  measure(): Promise<number>;
  /** For people: why not everything can be sent; undefined: it can, as far as is known. `growth`: bytes. */
  excess(growth?: number): string | undefined;
  /** True: the gateway would take this many more bytes now. */
  takes(growth: number): boolean;
  /** Notes that a row was not sent because the workspace is full: such rows are due again when there is room. */
  holds(): void;
  /** The gateway refused a request because the workspace is full. */
  refused(excess: Excess): void;
  /** The gateway carried out this attempt, which added `bytes`. Call it in the transaction that closes the attempt. */
  grew(attempt: { readonly id: AttemptId; readonly node: NodeRowId }, bytes: number): void;
  /**
   * Asks for room before at most `bytes` bytes are added; `exactly` counts them when the upper bound does not fit.
   * Rejects with EDQUOT when the workspace is known to have no room for them. Names need no room.
   */
  require(bytes: number, exactly?: () => Promise<number>): Promise<void>;
  /** Asks the gateway for quota and role. Never rejects. */
  look(): Promise<void>;
  /** Asks the gateway now and then, while the quota or the role may change. */
  lookLater(): void;
  start(): void;
  stop(): void;
}
