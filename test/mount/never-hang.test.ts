/**
 * No system call hangs, whatever happens to the gateway, the disk or the daemon: each comes back within the
 * limits, with a result or an error, and a signal ends what waits. The limits are a tenth of the real ones;
 * `npm run soak -- never-hang` has these.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { becomeOrdinaryUser, type OrdinaryUser, whyNoOrdinaryUser } from "../support/ordinary-user.ts";
import { createPlace, type Place } from "../support/wsfs.ts";
import {
  describeLongest,
  interruptAll,
  isLate,
  makeWorkspace,
  type Row,
  runTrouble,
  TROUBLES,
  type TroubleName,
  UMOUNT,
  WAITING,
} from "./support/never-hang.ts";
import { CALLS, type Outcome } from "./support/never-hang-calls.ts";

const DIVISOR = 10;
const isRoot = process.getuid?.() === 0;

const WHO = [
  { who: "root", whyNot: isRoot ? undefined : "needs root" },
  { who: "an ordinary user by fusermount3", whyNot: whyNoOrdinaryUser() },
];

describe.each(WHO)("mounted by $who (root is needed for a small disk)", ({ who, whyNot }) => {
  if (whyNot !== undefined) return it.skip(whyNot);
  let user: OrdinaryUser | undefined;
  let place: Place;
  const rows = new Map<string, readonly Row[]>();
  let interrupted: readonly Outcome[] = [];
  beforeAll(async () => {
    user = who === "root" ? undefined : await becomeOrdinaryUser("");
    place = createPlace(undefined, user);
    const workspace = await makeWorkspace(place, user);
    // Each waits most of its time.
    const all = (Object.keys(TROUBLES) as TroubleName[]).map(async (trouble) => {
      rows.set(trouble, await runTrouble(place, workspace, trouble, DIVISOR));
    });
    const results = await Promise.allSettled([
      ...all,
      interruptAll(place, workspace).then((outcomes) => {
        interrupted = outcomes;
      }),
    ]);
    for (const result of results) if (result.status === "rejected") throw result.reason;
  });
  afterAll(async () => {
    process.stdout.write(`mounted by ${who}: ${describeLongest([...rows.values()].flat())}\n`);
    await place.cleanUp();
    await user?.end();
  });

  it.each(Object.entries(TROUBLES))("%s: %s", (trouble) => {
    const found = rows.get(trouble) ?? [];
    expect(found.map(({ call }) => call).sort()).toEqual([...Object.keys(CALLS), "wsfs status", "wsfs umount"].sort());
    expect(found.filter(isLate)).toEqual([]);
    if (trouble === "full" || trouble === "stopped") return;
    const saidOf = (needs: "local" | "remote") =>
      found
        .filter(({ call }) => CALLS[call] !== undefined && (CALLS[call].needs === "local") === (needs === "local"))
        .map(({ call, said }) => [call, said]);
    // What is on this machine needs no gateway; for what is not there is an error.
    expect(saidOf("local").filter(([, said]) => said !== "ok")).toEqual([["stat a name that is not there", "ENOENT"]]);
    expect(saidOf("remote").filter(([, said]) => said !== "EIO")).toEqual([["read by mmap: not cached", "SIGBUS"]]);
  });

  it("a signal ends whatever waits for the gateway, close and fsync too, and umount(8) does not wait", () => {
    expect(Object.fromEntries(interrupted.map(({ call, said }) => [call, said]))).toEqual({
      ...Object.fromEntries(WAITING.map((call) => [call, "interrupted"])),
      [UMOUNT]: "ok",
    });
  });
});
