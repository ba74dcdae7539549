/** A request that turns out to have been carried out while its row is made safe for sending it again: it is not sent. */
import { expect, test } from "vitest";
import type { HttpRequest } from "../../src/contract/http.ts";
import { begin } from "./support/one-world.ts";

const TIMEOUT = { timeout: 120_000 };

type It = Awaited<ReturnType<typeof begin>>;

interface Case {
  readonly what: string;
  change(it: It): Promise<unknown>;
  isMeant(request: HttpRequest): boolean;
}

const CASES: readonly Case[] = [
  {
    what: "a birth",
    change: (it) => it.save("new"),
    isMeant: ({ method, path }) => method === "POST" && path.startsWith("/v1/files/"),
  },
  {
    what: "a new version",
    change: (it) => it.save("old", "changed"),
    isMeant: ({ method }) => method === "PUT",
  },
  {
    what: "a move",
    change: (it) => it.rename("old", "elsewhere"),
    // A folder's time goes the same way.
    isMeant: ({ method, body }) => method === "PATCH" && body?.kind === "json" && /"name"/.test(JSON.stringify(body)),
  },
];

/** The first sending's answer is lost, or its sender is killed; the journal tells when it is about to be sent again. */
async function sentAgain({ change, isMeant }: Case, end: "lost" | "killed"): Promise<number> {
  let held: Promise<void> | undefined;
  let goOn = () => {};
  let waiting = 0;
  let it: It | undefined;
  const syncRows = async () => {
    // A start is not to be held up.
    if (held === undefined || it?.mount.process === undefined) return;
    waiting += 1;
    await held;
  };
  it = await begin(true, {}, { engine: () => ({ syncRows }) });
  const { world, rules } = it;
  await it.save("old");
  await it.drain();
  world.setLag({ path: 10_000, journal: 10_000, id: 0 });
  let sent = 0;
  rules.choose = (request) => {
    if (!isMeant(request)) return undefined;
    sent += 1;
    held ??= new Promise<void>((resolve) => {
      goOn = resolve;
    });
    return sent > 1 ? undefined : end === "lost" ? "lost-after" : "silent-after";
  };
  await change(it);
  await it.until(() => sent === 1);
  if (end === "killed") await it.again("crash");
  await it.until(() => waiting > 0);
  await world.clock.advance(20_000);
  goOn();
  await world.clock.advance(60_000);
  await it.drain();
  world.check();
  return sent;
}

test.each(CASES)("$what, its answer lost: not sent again", TIMEOUT, async (it) => {
  expect(await sentAgain(it, "lost")).toBe(1);
});

test.each(CASES)("$what, killed before its answer: not sent again", TIMEOUT, async (it) => {
  expect(await sentAgain(it, "killed")).toBe(1);
});
