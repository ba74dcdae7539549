/** A state dir in which many files wait to be uploaded, made by the engine's own rows and files, without a program for each. */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { parseRequest, type Request } from "../../../src/engine/core/index.ts";
import { rowTime } from "../../../src/lib/clocks.ts";
import { NO_RANGES } from "../../../src/lib/ranges.ts";
import { createMetadata, openDatabase, ROOT_INODE } from "../../../src/metadata/metadata.ts";
import { unborn } from "../../../src/metadata/nodes.ts";

const PER_FOLDER = 1_000;
const CHUNK = 10_000;
/** As content/layout.ts has it. */
const SHARD = 1_000;

/** In folders of a thousand below the root; the mount that the state dir belongs to has ended. */
export async function makeBacklog(stateDir: string, count: number): Promise<void> {
  const metadata = createMetadata<Request>(openDatabase(join(stateDir, "metadata.db")), parseRequest);
  const now = Date.now();
  const time = `${Math.floor(now / 1000)}.000000000`;
  const common = { atime: time, ctime: time, originNode: null, originVersion: null, hash: null };
  const attributes = { mode: 0o644, mtime: time, btime: time };
  let folder = ROOT_INODE;
  for (let done = 0; done < count; ) {
    metadata.transaction(() => {
      for (const end = Math.min(count, done + CHUNK); done < end; done += 1) {
        if (done % PER_FOLDER === 0) {
          const inode = metadata.inodes.create({ ...common, kind: "folder", attributes, size: 0, content: "clean" });
          metadata.inodes.update(inode.id, { listed: 0 });
          const entry = metadata.entries.create(ROOT_INODE, `folder-${done}`, inode.id);
          metadata.nodes.create(unborn(entry.id, "folder", rowTime(now), rowTime(now)));
          folder = inode.id;
        }
        const inode = metadata.inodes.create({ ...common, kind: "file", attributes, size: 10, content: "dirty" });
        const entry = metadata.entries.create(folder, `file-${done}`, inode.id);
        metadata.nodes.create(unborn(entry.id, "file", rowTime(now), rowTime(now)));
        const { kernelNodeId } = inode;
        const live = {
          originNode: null,
          originVersion: null,
          size: 10,
          bytes: 4096,
          missing: NO_RANGES,
          usedAt: rowTime(now),
        };
        metadata.cacheFiles.create({ kernelNodeId, ...live });
        const path = join(stateDir, "live", String(Math.floor(kernelNodeId / SHARD)), String(kernelNodeId));
        mkdirSync(dirname(path), { recursive: true });
        writeFileSync(path, "0123456789", { mode: 0o600 });
      }
    });
  }
  metadata.checkpoint();
  metadata.close();
}
