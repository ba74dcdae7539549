/**
 * The places of the history folder. A place says everything that its attributes and its content are found by, so that
 * any daemon of the mount can answer for it: its JSON is what the rows keep for a kernel node id.
 */
import { z } from "zod";

const folderView = z.discriminatedUnion("show", [
  /** Folders as they are now; each file is a folder with its versions. */
  z.object({ show: z.literal("versions") }),
  /** A folder as it was at a moment (ISO 8601, UTC). */
  z.object({ show: z.literal("at"), at: z.string() }),
  /** Folders as they are now, with what was deleted from them. */
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
    /** Permission bits that it had. */
    mode: z.number(),
  }),
  z.object({ is: z.literal("link"), target: z.string(), mtime: z.string() }),
  z.object({ is: z.literal("text"), text: z.enum(["readme", "status"]) }),
]);
export type Place = z.infer<typeof place>;
export type Content = Extract<Place, { is: "content" }>;

/** Undefined: no place of this program's. */
export function parsePlace(json: string): Place | undefined {
  return place.safeParse(JSON.parse(json)).data;
}

export function isFolder({ is }: Place): boolean {
  return is === "top" || is === "moments" || is === "nodes" || is === "folder" || is === "versions";
}
