/**
 * The places of the history folder. A place holds everything by which its attributes and its content are found. The
 * rows keep its JSON for a kernel node id, so that any daemon of the mount can answer for it.
 */
import { z } from "zod";

const folderView = z.discriminatedUnion("show", [
  /** A folder as it is now; each file in it is a folder with its versions. */
  z.object({ show: z.literal("versions") }),
  /** A folder as it was at a moment (ISO 8601, UTC). */
  z.object({ show: z.literal("at"), at: z.string() }),
  /** A folder as it is now, with the nodes that were deleted from it. */
  z.object({ show: z.literal("deleted") }),
  /** A node as it is now. */
  z.object({ show: z.literal("now") }),
]);
export type FolderView = z.infer<typeof folderView>;

const place = z.discriminatedUnion("is", [
  z.object({ is: z.literal("top") }),
  z.object({ is: z.literal("moments") }),
  z.object({ is: z.literal("nodes") }),
  z.object({ is: z.literal("folder"), view: folderView, node: z.string(), mtime: z.string(), isDeleted: z.boolean() }),
  z.object({ is: z.literal("versions"), node: z.string(), name: z.string(), mtime: z.string() }),
  z.object({
    is: z.literal("content"),
    node: z.string(),
    version: z.string(),
    size: z.number(),
    /** Lower-case hex SHA-256; null: the gateway tells none. */
    hash: z.string().nullable(),
    mtime: z.string(),
    /** Permission bits of that version. */
    mode: z.number(),
  }),
  z.object({ is: z.literal("link"), target: z.string(), mtime: z.string() }),
  z.object({ is: z.literal("text"), text: z.enum(["readme", "status"]) }),
]);
export type HistoryPlace = z.infer<typeof place>;
export type Content = Extract<HistoryPlace, { is: "content" }>;

/** Undefined: the JSON is not one of these places. Throws a SyntaxError if it is no JSON. */
export function parsePlace(json: string): HistoryPlace | undefined {
  return place.safeParse(JSON.parse(json)).data;
}

/** True: programs see the place as a folder. */
export function isFolder({ is }: HistoryPlace): boolean {
  return is === "top" || is === "moments" || is === "nodes" || is === "folder" || is === "versions";
}
