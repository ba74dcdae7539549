/** The message of copy-worker.ts. */
import { z } from "zod";

export const copyReply = z.union([
  z.object({ made: z.literal(true) }),
  z.object({ damage: z.string() }),
  z.object({ failed: z.string() }),
]);
export type CopyReply = z.infer<typeof copyReply>;
