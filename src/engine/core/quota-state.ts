/** What may be asked of the workspace's quota, and who tells it news; quota.ts is how. */
import type { Excess } from "../../client/errors.ts";
import type { AttemptId, NodeRowId } from "../../metadata/ids.ts";

export interface Quota {
  /** Bytes the workspace may hold; undefined: as many as it likes, as far as is known. */
  readonly limit: number | undefined;
  /** Bytes it holds at the gateway. */
  readonly used: number;
  /** Bytes it will hold more when all is sent; as of now, or of a moment ago. Less than none where files go. */
  waiting(): number;
  /** The same, added up now, what is being written included. */
  measure(): Promise<number>;
  /** Why not all that waits can be sent, in words; undefined: it can, or nothing is known against it. */
  excess(growth?: number): string | undefined;
  /** Whether the gateway would take so many bytes more now. */
  takes(growth: number): boolean;
  /** Something was not sent for want of room: it is to be looked at when there is more. */
  holds(): void;
  /** The gateway refused something. */
  refused(excess: Excess): void;
  /** The gateway has done what this attempt asked for; called in the transaction that closes the attempt. */
  grew(attempt: { readonly id: AttemptId; readonly node: NodeRowId }, bytes: number): void;
  /**
   * Before so many bytes are added, at most; `exactly` counts them where it matters. Rejects with
   * EDQUOT where the workspace is known to have no room for them. Names need none.
   */
  require(bytes: number, exactly?: () => Promise<number>): Promise<void>;
  /** Asks the gateway for the workspace. Never rejects. */
  look(): Promise<void>;
  /** It is asked now and then, as long as there is something to be told: a quota, or a role that is given. */
  lookLater(): void;
  start(): void;
  stop(): void;
}
