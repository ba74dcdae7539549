/** The workspace's quota: what can be asked of it, and what it is told. sync/quota.ts implements it. */
import type { Excess } from "../../client/errors.ts";
import type { AttemptId, NodeRowId } from "../../metadata/ids.ts";

export interface Quota {
  /** Bytes that the workspace may hold; undefined: no limit, as far as is known. */
  readonly limit: number | undefined;
  /** Bytes that the gateway holds. */
  readonly used: number;
  /** Bytes by which the workspace will grow when all is sent, as of now or of a moment ago. Negative where files go. */
  waiting(): number;
  /** The same, added up now and including what is being written. */
  measure(): Promise<number>;
  /** Why not all that waits can be sent, in words; undefined: all can be sent, as far as is known. */
  excess(growth?: number): string | undefined;
  /** True: the gateway would take so many more bytes now. */
  takes(growth: number): boolean;
  /** Something was not sent because the workspace is full: it is looked at again when there is room. */
  holds(): void;
  /** The gateway refused something because the workspace is full. */
  refused(excess: Excess): void;
  /** The gateway has carried out this attempt. Call it in the transaction that closes the attempt. */
  grew(attempt: { readonly id: AttemptId; readonly node: NodeRowId }, bytes: number): void;
  /**
   * Asks for room before at most so many bytes are added; `exactly` counts them where that matters. Rejects with EDQUOT
   * when the workspace is known to have no room for them. Names need none.
   */
  require(bytes: number, exactly?: () => Promise<number>): Promise<void>;
  /** Asks the gateway for the workspace. Never rejects. */
  look(): Promise<void>;
  /** Asks the gateway now and then, as long as there may be news: a quota, or a role that is given. */
  lookLater(): void;
  start(): void;
  stop(): void;
}
