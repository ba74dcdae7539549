/**
 * The file that says how another gateway words things: it is refused with a line for each thing that is wrong, or a client
 * works by it, which then fails at most as the gateway's answers make it fail.
 */
import { readFileSync } from "node:fs";
import fc from "fast-check";
import { createClient } from "../../src/client/create-client.ts";
import { staticToken } from "../../src/client/credentials.ts";
import { RemoteError } from "../../src/client/errors.ts";
import { OWN_PROFILE, ProfileError, parseProfile } from "../../src/client/profile.ts";
import { BARE_PROFILE } from "../../src/gateway/start.ts";
import { createCoreTransport } from "../support/core-transport.ts";
import { createTestCore } from "../support/gateway-core.ts";
import type { Effort } from "./targets.ts";

type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

const bare = readFileSync(BARE_PROFILE, "utf8");
const { name: _name, ...own } = OWN_PROFILE;
/** With all names there are. */
const EXAMPLES: readonly Json[] = [
  JSON.parse(bare),
  { name: "own", operations: JSON.parse(JSON.stringify(own.operations)) },
];

/** What may stand somewhere, and is right in another place. */
const small = fc.oneof(
  fc.constantFrom<Json>(
    null,
    true,
    false,
    "",
    "id",
    "a.b.c",
    "iso",
    "milliseconds",
    "/v1/{nodeId}",
    "/{",
    "none",
    "GET",
    0,
    {},
    [],
  ),
  fc.constantFrom<Json>(
    "__proto__",
    "constructor",
    "toString",
    "a\nb",
    "\u{1f600}",
    "..",
    ".",
    { at: "a.b" },
    { file: "FILE" },
  ),
  fc.jsonValue({ maxDepth: 2 }).map((value) => value as Json),
);
const change = fc.record({
  at: fc.array(fc.nat(40), { maxLength: 4 }),
  to: small,
  key: fc.option(fc.string(), { nil: undefined }),
});

/** The value with another one somewhere in it, or one that is new, or is gone. */
function changed(value: Json, at: readonly number[], to: Json, key: string | undefined): Json {
  const [first, ...rest] = at;
  if (first === undefined || value === null || typeof value !== "object") return to;
  if (Array.isArray(value)) return [...value.slice(0, first), changed(value[first] ?? null, rest, to, key)];
  const names = Object.keys(value);
  const name = (rest.length === 0 ? key : undefined) ?? names[first % Math.max(names.length, 1)] ?? "name";
  return { ...value, [name]: changed(value[name] ?? null, rest, to, key) };
}

const structured = fc
  .tuple(fc.constantFrom(...EXAMPLES), fc.array(change, { minLength: 1, maxLength: 4 }))
  .map(([example, changes]) =>
    JSON.stringify(changes.reduce((value, { at, to, key }) => changed(value, at, to, key), example)),
  );

const bytes = fc
  .tuple(fc.nat(bare.length), fc.nat(40), fc.string({ unit: "binary", maxLength: 20 }))
  .map(([start, length, text]) => bare.slice(0, start) + text + bare.slice(start + length));

const core = createTestCore();

function clientOf(text: string) {
  const profile = parseProfile(text, "p.json");
  const transport = createCoreTransport(() => core.gateway);
  return createClient({ transport, credentials: staticToken(core.token()), now: core.clock.wallClock, profile });
}

async function holds(text: string): Promise<boolean> {
  let client: ReturnType<typeof clientOf>;
  try {
    client = clientOf(text);
  } catch (error) {
    if (!(error instanceof ProfileError)) throw error;
    return error.faults.length > 0 && error.message.split("\n").length === error.faults.length;
  }
  const { root } = core.workspace;
  for (const ask of [
    () => client.findWorkspace("workspace"),
    () => client.getNode(root),
    () => client.listFolder(root),
    () => client.createFolder(root, "a"),
    () => client.patchNode(root, { name: "b" }),
  ]) {
    try {
      await ask();
    } catch (error) {
      if (!(error instanceof RemoteError)) throw error;
    }
  }
  return true;
}

export async function fuzzProfile({ seconds, seed }: Effort): Promise<string> {
  let runs = 0;
  const property = fc.asyncProperty(fc.oneof({ weight: 4, arbitrary: structured }, bytes, fc.json()), (text) => {
    runs++;
    return holds(text);
  });
  await fc.assert(property, {
    seed,
    numRuns: 1e9,
    interruptAfterTimeLimit: seconds * 1000,
    markInterruptAsFailure: false,
  });
  return `${runs} profiles`;
}
