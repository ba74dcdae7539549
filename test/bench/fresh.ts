/**
 * How long it takes until a change is shown by another mount, with no lag at the gateway: from the end
 * of the call that made it, over a gateway and two mounts of this machine. One watcher looks every two
 * milliseconds at what its kernel keeps. What the first mount waits for more changes of the same file
 * before it sends (a second) is in all of them; beside it, the same made at the gateway itself.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { createClient } from "../../src/client/create-client.ts";
import { staticToken } from "../../src/client/credentials.ts";
import { createHttpTransport } from "../../src/client/http-transport.ts";
import { run, until } from "../support/child.ts";
import { check, createPlace, type TestGateway, type TestMount } from "../support/wsfs.ts";
import { type BenchOptions, readOptions, tellFailure } from "./support/options.ts";

const ROUNDS = 10;

/** Prints when it is so, in milliseconds of the clock all processes of a machine share. */
const WATCH = `
import os, stat, sys, time
os.chdir(sys.argv[1])
def size(name):
    try: return os.stat(name).st_size
    except FileNotFoundError: return None
until = time.monotonic() + 60
while not eval(sys.argv[2]):
    if time.monotonic() > until: sys.exit("never: " + sys.argv[2])
    time.sleep(0.002)
print(time.clock_gettime_ns(time.CLOCK_REALTIME) / 1e6)
`;

interface Change {
  readonly name: string;
  readonly script: string;
  readonly isSo: string;
}

const changes: readonly Change[] = [
  { name: "create", script: "printf 1234 > f", isSo: "size('f') == 4" },
  { name: "content", script: "printf 123456 > f", isSo: "size('f') == 6" },
  { name: "chmod", script: "chmod 600 f", isSo: "stat.S_IMODE(os.stat('f').st_mode) == 0o600" },
  { name: "rename", script: "mv f g", isSo: "size('f') is None and size('g') == 6" },
  { name: "delete", script: "rm g", isSo: "size('g') is None" },
];

type Make = (change: Change) => Promise<void>;

async function measure(there: TestMount, rounds: number, make: Make): Promise<Map<string, number[]>> {
  const figures = new Map<string, number[]>(changes.map(({ name }) => [name, []]));
  for (let round = 0; round < rounds; round += 1) {
    for (const change of changes) {
      const watching = run("/usr/bin/python3", ["-c", WATCH, there.dir, change.isSo], { timeoutMs: 90_000 });
      // The watcher looks before anything changes.
      await sleep(200);
      await make(change);
      const made = performance.timeOrigin + performance.now();
      figures.get(change.name)?.push(Number(check(await watching).stdout) - made);
    }
  }
  return figures;
}

/** The same changes, by the client. */
async function atGateway(gateway: TestGateway, root: string): Promise<{ make: Make; close: () => Promise<void> }> {
  const client = createClient({
    transport: createHttpTransport({ baseUrl: gateway.baseUrl }),
    credentials: staticToken(gateway.token),
  });
  let node = "";
  const bytes = (text: string) => ({
    size: text.length,
    async *read() {
      yield Buffer.from(text);
    },
  });
  const doing: Record<string, () => Promise<unknown>> = {
    create: async () => {
      node = (await client.upload(root, "f", bytes("1234"))).id;
    },
    content: () => client.writeContent(node, bytes("123456")),
    chmod: () => client.patchNode(node, { attributes: { mode: 0o600 } }),
    rename: () => client.patchNode(node, { name: "g" }),
    delete: () => client.deleteNode(node),
  };
  return { make: async ({ name }) => void (await doing[name]?.()), close: () => client.close() };
}

function line(name: string, figures: Map<string, number[]>): string {
  const cells = [...figures.values()].map((all) => {
    const sorted = [...all].sort((a, b) => a - b).map((ms) => Math.max(0, Math.round(ms)));
    return `${sorted[Math.floor(sorted.length / 2)]} (${sorted[0]}-${sorted.at(-1)})`.padStart(18);
  });
  return `${name.padEnd(16)}${cells.join("")}\n`;
}

async function bench({ rounds = ROUNDS, json }: BenchOptions): Promise<void> {
  const place = createPlace();
  try {
    const gateway = await place.gateway();
    const here = await place.mount(gateway, { name: "here" });
    const there = await place.mount(gateway, { name: "there" });
    await until("the journal is live", async () => (await there.status()).live === true);
    const fromMount = await measure(there, rounds, async ({ script }) => void check(await here.sh(script)));
    const client = createClient({
      transport: createHttpTransport({ baseUrl: gateway.baseUrl }),
      credentials: staticToken(gateway.token),
    });
    const root = (await client.findWorkspace(gateway.workspace))?.rootId ?? "";
    await client.close();
    const { make, close } = await atGateway(gateway, root);
    const fromGateway = await measure(there, rounds, make);
    await close();
    if (json) {
      const all = { mount: Object.fromEntries(fromMount), gateway: Object.fromEntries(fromGateway) };
      process.stdout.write(`${JSON.stringify(all)}\n`);
      return;
    }
    process.stdout.write("until another mount shows it, milliseconds: median (smallest-largest)\n");
    process.stdout.write(`${"made".padEnd(16)}${changes.map(({ name }) => name.padStart(18)).join("")}\n`);
    process.stdout.write(line("in a mount", fromMount));
    process.stdout.write(line("at the gateway", fromGateway));
  } finally {
    await place.cleanUp();
  }
}

try {
  const options = readOptions(process.argv.slice(2), []);
  if (options !== undefined) await bench(options);
} catch (error) {
  tellFailure(error);
}
