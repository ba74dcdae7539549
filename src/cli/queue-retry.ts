/** `wsfs queue retry`: what was refused or waits is tried now. */
import { resolve } from "node:path";
import { EXIT, Failure } from "./failure.ts";
import { requireServed } from "./find-mount.ts";
import type { Values } from "./options.ts";
import { formatCount } from "./wording.ts";

export async function queueRetry(values: Values<"queue retry">): Promise<number> {
  const { served, mount } = await requireServed(values.dir);
  const [{ ask }, { postRetry }] = await Promise.all([import("./ask.ts"), import("../daemon/control-client.ts")]);
  const asked = new Map(values.paths.map((path) => [pathInMount(path, mount.mountpoint), path]));
  const paths = values.paths.length === 0 ? undefined : [...asked.keys()];
  const { retried, unknown } = await ask(served, (socket) => postRetry(socket, paths));
  if (values.json) process.stdout.write(`${JSON.stringify({ retried, unknown })}\n`);
  else process.stdout.write(`${formatCount(retried, "change")} tried now\n`);
  if (unknown.length === 0) return EXIT.ok;
  const names = unknown.map((path) => asked.get(path) ?? path).join(", ");
  throw new Failure(`nothing waits to be uploaded at ${names}; wsfs queue ${values.dir} shows what does`);
}

/** As the queue shows it: a path on this machine that is in the mount, else one from the mount's root. Nothing is looked at. */
export function pathInMount(path: string, mountpoint: string, folder = process.cwd()): string {
  const base = mountpoint === "/" ? "/" : `${mountpoint}/`;
  const here = resolve(folder, path);
  if (here === mountpoint) return "/";
  if (here.startsWith(base)) return `/${here.slice(base.length)}`;
  return resolve("/", path);
}
