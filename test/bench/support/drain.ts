/**
 * A program: one side of the queue's benchmark, in a process of its own as a daemon is. It makes the
 * small files, or a folder for them, and prints a line; at SIGUSR2 it sends them and prints how many seconds that
 * took.
 *   node --import ./scripts/typescript.mjs test/bench/support/drain.ts client|engine BASE_URL TOKEN_FILE WORKSPACE STATE_DIR
 */
import { createHash, randomUUID } from "node:crypto";
import { mkdirSync, readFileSync } from "node:fs";
import { setImmediate } from "node:timers/promises";
import { kernelNodeId } from "../../../src/metadata/ids.ts";
import { ROOT_INODE } from "../../../src/metadata/metadata.ts";
import { productCaller } from "./callers.ts";
import { startAlone } from "./engine.ts";
import { CONNECTIONS, contentOf, FILES, REQUESTS } from "./small-files.ts";

const CALLER = { uid: 0, gid: 0, pid: 1, signal: new AbortController().signal };
/** Nothing is sent while the files are made. */
const NEVER_MS = 3_600_000;

interface Side {
  send(): Promise<void>;
  stop(): Promise<void>;
}

type Gateway = Readonly<Record<"baseUrl" | "token" | "workspace", string>>;

async function clientAlone(gateway: Gateway): Promise<Side> {
  const caller = await productCaller(gateway, CONNECTIONS);
  const folder = await caller.makeFolder(`client-${randomUUID()}`);
  let next = 0;
  const sendOn = async () => {
    for (let index = next++; index < FILES; index = next++) {
      const block = contentOf(index);
      const hash = createHash("sha256").update(block).digest("hex");
      await caller.upload(folder, `file-${index}`, { block, times: 1, hash });
    }
  };
  return {
    send: async () => void (await Promise.all(Array.from({ length: CONNECTIONS }, sendOn))),
    stop: () => caller.close(),
  };
}

async function engineAlone(gateway: Gateway, stateDir: string): Promise<Side> {
  mkdirSync(stateDir, { recursive: true });
  const settings = { debounceMs: NEVER_MS, connections: CONNECTIONS, concurrency: REQUESTS };
  const { engine, stop } = await startAlone(gateway, stateDir, settings);
  const { fileSystem, context } = engine;
  const send = async () => {
    const { drained, left } = await engine.drain({ settle: false, signal: CALLER.signal });
    if (!drained) throw new Error(`not drained: ${left.join("; ")}`);
  };
  const root = context.metadata.inodes.get(ROOT_INODE)?.kernelNodeId ?? kernelNodeId(0);
  const folder = await fileSystem.mkdir(CALLER, root, `engine-${randomUUID()}`, 0o755);
  await send();
  const flags = { read: false, write: true, append: false, truncate: false, exclusive: true };
  for (let index = 0; index < FILES; index += 1) {
    const { handle } = await fileSystem.create(CALLER, folder.kernelNodeId, `file-${index}`, 0o644, flags);
    await fileSystem.write(CALLER, handle, 0, contentOf(index), { killPrivileges: false });
    await fileSystem.flush(CALLER, handle);
    await fileSystem.release(handle);
    // As between two requests of a kernel: the write-ahead log is kept short meanwhile.
    await setImmediate();
  }
  return { send, stop };
}

const [which, baseUrl = "", tokenFile = "", workspace = "", stateDir] = process.argv.slice(2);
if ((which !== "client" && which !== "engine") || stateDir === undefined) {
  throw new Error("expected client|engine BASE_URL TOKEN_FILE WORKSPACE STATE_DIR");
}
const gateway = { baseUrl, token: readFileSync(tokenFile, "utf8").trim(), workspace };
const told = new Promise<void>((resolve) => {
  process.once("SIGUSR2", () => resolve());
});
// A signal that is waited for keeps no process; and nobody sends one once the benchmark has gone.
const benchmark = process.ppid;
const alive = setInterval(() => {
  if (process.ppid !== benchmark) process.exit(1);
}, 1_000);
const side = which === "client" ? await clientAlone(gateway) : await engineAlone(gateway, stateDir);
process.stdout.write("ready\n");
await told;
clearInterval(alive);
const begun = performance.now();
await side.send();
process.stdout.write(`${(performance.now() - begun) / 1000}\n`);
await side.stop();
