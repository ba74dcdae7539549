/** The fault points there are, read from the source: what the matrix must cover is what the code has. */
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const SOURCE = fileURLToPath(new URL("../../src/", import.meta.url));
const SUPERVISOR = fileURLToPath(new URL("../../native/supervisor/", import.meta.url));

/** A label that names the request, and the kinds there are. */
const REQUEST = "request: $" + "{attempt.request.do}";
const REQUESTS = ["folder", "upload", "copy", "content", "reference", "patch", "delete"] as const;

export const engineLabels = () => labelsBelow(`${SOURCE}engine/`, ".ts");
/** Of the daemon around the engine. */
export const daemonLabels = () =>
  new Set([...labelsBelow(`${SOURCE}daemon/`, ".ts"), ...labelsBelow(`${SOURCE}lib/`, ".ts")]);
/** Of the gateway that serves; backups are made by a process of their own. */
export const gatewayLabels = () =>
  new Set([...labelsBelow(`${SOURCE}gateway/`, ".ts")].filter((label) => label.startsWith("gateway: ")));
export const supervisorLabels = () => labelsBelow(SUPERVISOR, ".c");

function labelsBelow(folder: string, ending: string): Set<string> {
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(ending));
  const found = names.flatMap((name) =>
    [...readFileSync(`${folder}${name}`, "utf8").matchAll(/\bstep\(["`]([^"`]+: [^"`]+)["`]\)/g)].map(
      (match) => match[1] ?? "",
    ),
  );
  return new Set(found.flatMap((label) => (label === REQUEST ? REQUESTS.map((kind) => `request: ${kind}`) : [label])));
}
