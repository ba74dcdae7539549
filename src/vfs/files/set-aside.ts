/** Local files that belong to nothing known: set aside, never removed unless they are empty. */
import { hasCode } from "../../lib/system-error.ts";
import type { Context } from "../context/context.ts";

type Needs = Pick<Context, "runtime" | "paths" | "log">;

/** Where it has gone meanwhile there is nothing to do. */
export async function setAside({ runtime, paths, log }: Needs, path: string, name: string): Promise<void> {
  try {
    const { allocated } = await runtime.files.stat(path);
    if (allocated === 0) return await runtime.files.remove(path);
    const target = await paths.quarantine(path, name);
    log.warn({ path: target }, "a local file that belongs to nothing known was set aside");
  } catch (error) {
    if (!hasCode(error, "ENOENT")) throw error;
  }
}
