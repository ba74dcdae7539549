/**
 * Preloaded into the product's processes by --profile: from its start to its end each records what
 * its main thread does, and writes it to WSFS_PROFILE_DIR. (--cpu-prof cannot be set by NODE_OPTIONS.)
 */
import { writeFileSync } from "node:fs";
import { Session } from "node:inspector";
import { basename, join } from "node:path";
import { isMainThread } from "node:worker_threads";

const folder = process.env.WSFS_PROFILE_DIR;

if (isMainThread && folder !== undefined) {
  const session = new Session();
  session.connect();
  session.post("Profiler.enable");
  session.post("Profiler.start");
  process.on("exit", () => {
    // A session of the same thread answers before post returns.
    session.post("Profiler.stop", (error, result) => {
      if (error !== null) throw error;
      const program = [basename(process.argv[1] ?? "node", ".js"), process.argv[2] ?? "", process.pid];
      const name = program.filter((word) => word !== "").join("-");
      writeFileSync(join(folder, `${name}.cpuprofile`), JSON.stringify(result.profile));
    });
  });
}
