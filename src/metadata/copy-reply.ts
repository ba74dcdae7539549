/** What copy-worker.ts says of the copy that it made, or of the database that it looked at. */
import { z } from "zod";

export const copyReply = z.union([
  z.object({ made: z.literal(true) }),
  z.object({ damage: z.string() }),
  z.object({ failed: z.string() }),
]);
export type CopyReply = z.infer<typeof copyReply>;
