/** A mount follows an environment's entry: what is taken over, what cannot be, and when the file is looked at. */
import { describe, expect, it } from "vitest";
import { type EntrySettings, follow, nextSettings } from "../../src/daemon/entry-settings.ts";
import { type FollowOptions, followEnvironment } from "../../src/daemon/follow-environment.ts";
import type { DaemonSettings, FollowedEntry } from "../../src/daemon/settings.ts";
import { deferred } from "../../src/lib/deferred.ts";
import { SILENT } from "../../src/lib/log.ts";
import { SETTINGS as PLAIN } from "./settings.ts";

const FOLLOWED: FollowedEntry = { name: "team", file: "/c/config.json", seen: "1", fixed: ["keepFree"] };
const SETTINGS: DaemonSettings = {
  ...PLAIN,
  login: { file: "/l", howToSignIn: "sign in" },
  environment: FOLLOWED,
  keepFree: 1,
  unsentLimit: 1,
};
const KEYS = { baseUrl: "baseUrl", cacheSize: "cacheSize", keepFree: "keepFree", unsentLimit: "unsentLimit" };
const entry = (settings: EntrySettings["settings"], present: readonly string[] = []): EntrySettings => ({
  settings: { baseUrl: "http://h", cacheSize: 1, keepFree: 1, unsentLimit: 1, readOnly: false, ...settings },
  keys: { ...KEYS, readOnly: "readOnly" },
  present: [...present],
  seen: "2",
});

describe("of a changed entry", () => {
  it("is taken over what may change and was not given otherwise; what it says no more has its default", () => {
    const changed = entry({ cacheSize: 2, keepFree: 2 }, ["cacheSize", "keepFree"]);
    const { unsentLimit: _, ...settings } = changed.settings;
    const { next, taken, refused } = follow(SETTINGS, { ...changed, settings });
    expect({ taken, refused }).toEqual({ taken: ["cacheSize", "unsentLimit"], refused: [] });
    const { unsentLimit: __, ...before } = SETTINGS;
    expect(next).toEqual({ ...before, cacheSize: 2, environment: { ...FOLLOWED, seen: "2" } });
  });

  it("is refused what cannot change, and another gateway always", () => {
    const all = { ...SETTINGS, environment: { ...FOLLOWED, fixed: ["baseUrl"] } };
    const { next, taken, refused } = follow(all, entry({ baseUrl: "http://other", readOnly: true }));
    expect(taken).toEqual([]);
    expect(next).toMatchObject({ baseUrl: "http://h", readOnly: false });
    expect(refused).toEqual([
      expect.stringMatching(/^baseUrl cannot change while a workspace is mounted: /),
      expect.stringMatching(/^readOnly cannot change while a workspace is mounted: /),
    ]);
  });
});

it("how often a daemon may die is compared by whether it may at all, and not of a mount by libfuse", () => {
  const isRefused = (settings: DaemonSettings, crashes: number) =>
    follow(settings, { ...entry({ crashes }), keys: { crashes: "noRestart" } }).refused.length > 0;
  expect(isRefused(SETTINGS, 9)).toBe(false);
  expect(isRefused(SETTINGS, 0)).toBe(true);
  expect(isRefused({ ...SETTINGS, crashes: 0, fuseNative: { source: "w", allowOther: false } }, 5)).toBe(false);
});

describe("wsfs reload", () => {
  it("has what it is given go before the entry from then on", () => {
    const { next } = nextSettings(SETTINGS, { cacheSize: 7 });
    expect(next.environment?.fixed).toEqual(["keepFree", "cacheSize"]);
    expect(follow(next, entry({ cacheSize: 2 }, ["cacheSize"])).taken).toEqual([]);
  });

  it("of an environment takes over its entry also in the place of flags, and no default", () => {
    const { environment: _, ...unfollowed } = SETTINGS;
    const asked = { name: "uat", file: "/c", entry: entry({ cacheSize: 2, unsentLimit: 9 }, ["cacheSize"]) };
    expect(nextSettings(unfollowed, { keepFree: 3 }, asked)).toMatchObject({
      refused: [],
      next: { cacheSize: 2, unsentLimit: 1, keepFree: 3, login: SETTINGS.login },
    });
    const { next } = nextSettings(SETTINGS, {}, { ...asked, entry: entry({ keepFree: 5 }, ["keepFree"]) });
    expect(next).toMatchObject({ keepFree: 5, environment: { name: "uat", seen: "2", fixed: [] } });
  });
});

/** `said`: what the file says, one for each look. */
function followed(said: (EntrySettings | Error)[], more: Partial<FollowOptions> = {}) {
  const given: DaemonSettings[] = [];
  let looks = 0;
  let change = () => {};
  const follower = followEnvironment({
    settings: SETTINGS,
    environment: FOLLOWED,
    failed: undefined,
    log: SILENT,
    async read() {
      looks += 1;
      const next = said.shift();
      if (next === undefined || next instanceof Error) throw next ?? new Error("nobody changed it");
      return next;
    },
    identity: async () => "1",
    watch(onChange) {
      change = onChange;
      return { close() {} };
    },
    giveWay: async (next) => void given.push(next),
    ...more,
  });
  const changed = async () => {
    change();
    await new Promise(setImmediate);
  };
  return { follower, given, changed, looks: () => looks };
}

describe("the file", () => {
  it("is looked at when it changes, and at the beginning only where it is another one than was read", async () => {
    const same = followed([]);
    await new Promise(setImmediate);
    expect(same.looks()).toBe(0);
    const other = followed([entry({ cacheSize: 2 }, ["cacheSize"])], { identity: async () => "2" });
    await new Promise(setImmediate);
    expect(other.given).toMatchObject([{ cacheSize: 2, environment: { seen: "2" } }]);
    // The daemon after this one looks.
    await other.changed();
    expect(other.looks()).toBe(1);
  });

  it("changes nothing while it has a fault, which is told until it is mended", async () => {
    const { follower, given, changed } = followed([new Error("config.json: expected JSON"), entry({})]);
    await changed();
    expect(follower.status()).toEqual({ name: "team", file: "/c/config.json", trouble: "config.json: expected JSON" });
    await changed();
    expect(follower.status()).toEqual({ name: "team", file: "/c/config.json" });
    expect(given).toEqual([]);
  });

  it("that a daemon has just failed with is not tried again before it changes", async () => {
    const { follower, given, changed } = followed([entry({ cacheSize: 3 }, ["cacheSize"])], {
      failed: "it died",
      identity: async () => "2",
    });
    await new Promise(setImmediate);
    expect(follower.status().trouble).toBe("it died");
    expect(given).toEqual([]);
    await changed();
    expect(given).toMatchObject([{ cacheSize: 3 }]);
  });

  it("is looked at once more when it changes during a look", async () => {
    const first = deferred<EntrySettings>();
    const said = [first.promise, Promise.resolve(entry({ cacheSize: 5 }, ["cacheSize"]))];
    const { given, changed } = followed([], { read: () => said.shift() ?? Promise.reject(new Error("no more")) });
    await changed();
    await changed();
    await changed();
    first.resolve(entry({}));
    await new Promise(setImmediate);
    expect(given).toMatchObject([{ cacheSize: 5 }]);
    expect(said).toEqual([]);
  });

  it("is told not to be taken over where this daemon cannot give way", async () => {
    const { follower, changed } = followed([entry({ cacheSize: 2 }, ["cacheSize"])], {
      giveWay: () => Promise.reject(new Error("it is being unmounted")),
    });
    await changed();
    expect(follower.status().trouble).toBe("it is being unmounted");
  });
});
