/** The configuration file: what may stand in an environment's entry, what goes before it, and what is said of a fault. */
import { lstatSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it, test } from "vitest";
import { entrySettings } from "../../src/cli/entry-settings.ts";
import { userFolders } from "../../src/cli/environment.ts";
import { entryValue, FILE_FLAGS, flagOfKey, keyOf } from "../../src/cli/environment-entry.ts";
import { changeConfiguration, chooseEnvironment } from "../../src/cli/environments.ts";
import { withEntry } from "../../src/cli/mount.ts";
import { givenFlags, resolveValues } from "../../src/cli/resolve-values.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { createPlace } from "../support/wsfs.ts";

let folder: string;
let file: string;
beforeEach(async () => {
  folder = await temporaryFolder();
  file = join(folder, ".config/wsfs/config.json");
  mkdirSync(join(folder, ".config/wsfs"), { recursive: true });
});

const URL = "https://gateway.example.com";
function choose(entry: object, name = "team") {
  writeFileSync(file, JSON.stringify({ environments: { [name]: { baseUrl: URL, ...entry }, other: { typo: 1 } } }));
  return chooseEnvironment(name, userFolders({ HOME: folder }));
}

/** As `wsfs mount` has them. */
function values(entry: object, flags: Record<string, string> = {}, variables: NodeJS.ProcessEnv = {}) {
  const given = { DIR: "d", ...flags };
  const isGiven = givenFlags("mount", given, variables);
  return withEntry(resolveValues("mount", given, variables), isGiven, choose(entry).entry);
}

describe("a value of a mount", () => {
  it.each([
    ["the flag", { cacheSize: "3K" }, { "cache-size": "1K" }, { WSFS_CACHE_SIZE: "2K" }, 1024],
    ["the variable", { cacheSize: "3K" }, {}, { WSFS_CACHE_SIZE: "2K" }, 2048],
    ["the entry, where the variable is empty", { cacheSize: "3K" }, {}, { WSFS_CACHE_SIZE: "" }, 3072],
    ["the entry, as a number", { cacheSize: 4096 }, {}, {}, 4096],
    ["the default", {}, {}, {}, 10 * 1024 ** 3],
  ])("is that of %s", (_, entry, flags, variables, expected) => {
    expect(values(entry, flags, variables)["cache-size"]).toBe(expected);
  });

  it("may be a switch that a variable switches off again", () => {
    expect(values({ readOnly: true })["read-only"]).toBe(true);
    expect(values({ readOnly: true }, {}, { WSFS_READ_ONLY: "0" })["read-only"]).toBe(false);
  });
});

it.each([
  [{ cacheSize: "many" }, 'environments.team.cacheSize: expected a number of bytes such as 500M or 2G, got "many"'],
  [{ owners: "theirs" }, 'environments.team.owners: expected one of real, mine, got "theirs"'],
  [{ readOnly: "perhaps" }, 'environments.team.readOnly: expected 1 or 0, got "perhaps"'],
  [{ baseUrl: "gateway" }, "environments.team.baseUrl: expected a URL"],
  [{ issuer: "http://login.example.com" }, "environments.team.issuer: expected an https URL, or one of this machine"],
  [{ cachesize: "1G" }, /environments\.team: expected one of the keys baseUrl, .*, got "cachesize"$/],
  [{ stateDir: "/d" }, /environments\.team: expected one of the keys .*, got "stateDir"$/],
  [{ cacheSize: [1] }, "environments.team.cacheSize: "],
])("a fault names file, key, what was expected and what came: %j", (entry, message) => {
  expect(() => choose(entry)).toThrow(message);
  expect(() => choose(entry)).toThrow(file);
});

it("the profile of an entry begins at the file's folder", () => {
  expect(choose({ profile: "a.json" }).entry.profile).toBe(join(folder, ".config/wsfs/a.json"));
});

it("every key is a flag's, in either spelling, and a typed value stands in the file as it is to be read", () => {
  for (const name of FILE_FLAGS) expect(flagOfKey(keyOf(name))).toBe(name);
  expect(flagOfKey("cache-size")).toBe("cache-size");
  expect(() => flagOfKey("state-dir")).toThrow('got "state-dir"');
  expect([entryValue("cache-size", "20G"), entryValue("wait", "3"), entryValue("read-only", "yes")]).toEqual([
    "20G",
    3,
    true,
  ]);
  expect(() => entryValue("durability", "both")).toThrow('durability: expected one of local, remote, got "both"');
});

it("a daemon is told all that the entry decides, and which of it the entry says", () => {
  const { settings, keys, present } = entrySettings(choose({ cacheSize: "1K", wait: 3, noRestart: true }));
  expect(settings).toMatchObject({ baseUrl: URL, cacheSize: 1024, patienceMs: 3000, crashes: 0, durability: "local" });
  expect(present.sort()).toEqual(["baseUrl", "cacheSize", "crashes", "patienceMs"]);
  expect(keys).toMatchObject({ patienceMs: "wait", fuseNative: "transport", crashes: "noRestart" });
});

test("production is the default: that of its name, else the only one of a region; what was chosen goes first", () => {
  const chosen = (names: readonly string[], environment?: string) => {
    const environments = Object.fromEntries(names.map((name) => [name, { baseUrl: URL }]));
    writeFileSync(file, JSON.stringify({ environment, environments }));
    return chooseEnvironment(undefined, userFolders({ HOME: folder })).name;
  };
  expect(chosen(["uat", "production", "production-eu"])).toBe("production");
  expect(chosen(["uat", "production-eu", "sprint"])).toBe("production-eu");
  expect(chosen(["uat"])).toBe("uat");
  expect(chosen(["uat", "production"], "uat")).toBe("uat");
  const which = /^which environment\? --env takes one of production-eu, production-us/;
  expect(() => chosen(["production-eu", "production-us"])).toThrow(which);
});

it("a file that is a link stays one", async () => {
  const target = join(folder, "dotfiles.json");
  writeFileSync(target, "{}");
  symlinkSync(target, file);
  await changeConfiguration(() => ({ environments: { team: { baseUrl: URL } } }), file);
  expect(lstatSync(file).isSymbolicLink()).toBe(true);
  expect(JSON.parse(readFileSync(target, "utf8"))).toEqual({ environments: { team: { baseUrl: URL } } });
});

test("an environment with a login stays: its name for another gateway would take the tokens there", async () => {
  const place = createPlace();
  try {
    await place.wsfs(["env", "add", "team", "--base-url", URL]);
    const logins = join(place.folder, "state/wsfs/logins");
    mkdirSync(logins, { recursive: true });
    writeFileSync(join(logins, "team.json"), "{}", { mode: 0o600 });
    const removed = await place.wsfs(["env", "remove", "team"]);
    const line = `wsfs: team is ${URL}, which you are signed in to: "wsfs logout --env team" first\n`;
    expect([removed.code, removed.stderr]).toEqual([1, line]);
    // The local gateway needs no entry: its record has the address.
    mkdirSync(join(place.folder, "data/wsfs/gateway"), { recursive: true });
    const record = { baseUrl: "http://127.0.0.1:9", port: 9, workspace: "workspace" };
    writeFileSync(join(place.folder, "data/wsfs/gateway/gateway.json"), JSON.stringify(record));
    writeFileSync(join(logins, "local.json"), "{}", { mode: 0o600 });
    const moved = await place.wsfs(["env", "set", "local", "base-url", URL]);
    expect([moved.code, moved.stderr]).toEqual([1, line.replaceAll("team", "local").replace(URL, record.baseUrl)]);
    expect((await place.wsfs(["env", "set", "local", "cache-size", "20G"])).code).toBe(0);
    expect((await place.wsfs(["logout", "--env", "team", "--force"])).code).toBe(0);
    expect((await place.wsfs(["env", "remove", "team"])).stdout).toBe("team is no environment any more\n");
  } finally {
    await place.cleanUp();
  }
}, 60_000);

test("beside the local gateway a new environment is used once it is chosen, and adding it says so", async () => {
  const place = createPlace();
  try {
    const added = await place.wsfs(["env", "add", "team", "--base-url", URL]);
    expect(added.stdout).toMatch(/^team is \S+ \(in .*\)\n$/);
    mkdirSync(join(place.folder, "data/wsfs/gateway"), { recursive: true });
    const record = { baseUrl: "http://127.0.0.1:9", port: 9, workspace: "workspace" };
    writeFileSync(join(place.folder, "data/wsfs/gateway/gateway.json"), JSON.stringify(record));
    const again = await place.wsfs(["env", "add", "team", "--base-url", URL]);
    expect(again.stdout.split("\n")[1]).toBe('local is used where no --env is given; "wsfs env use team" changes that');
    // As README has it.
    await place.wsfs(["env", "use", "team"]);
    expect((await place.wsfs(["env", "list"])).stdout).toMatch(/^ {2}local .*\n\* team /);
  } finally {
    await place.cleanUp();
  }
}, 60_000);

test("of several that change it at once none loses what another has set", async () => {
  const place = createPlace();
  try {
    await place.wsfs(["env", "add", "team", "--base-url", URL]);
    const changes = [
      ["set", "team", "cache-size", "20G"],
      ["set", "team", "wait", "3"],
      ["set", "team", "log-level", "debug"],
      ["set", "team", "owners", "mine"],
      ["add", "other", "--base-url", URL],
      ["use", "team"],
    ];
    const ended = await Promise.all(changes.map((args) => place.wsfs(["env", ...args])));
    expect(ended.map(({ code, stderr }) => [code, stderr])).toEqual(changes.map(() => [0, ""]));
    expect(JSON.parse(readFileSync(place.path("home/.config/wsfs/config.json"), "utf8"))).toEqual({
      environment: "team",
      environments: {
        team: { baseUrl: URL, cacheSize: "20G", wait: 3, logLevel: "debug", owners: "mine" },
        other: { baseUrl: URL },
      },
    });
  } finally {
    await place.cleanUp();
  }
}, 60_000);

test("wsfs env: adds, sets, shows, unsets, uses and removes", async () => {
  const place = createPlace();
  try {
    const env = async (...args: readonly string[]) => {
      const { code, stdout, stderr } = await place.wsfs(["env", ...args]);
      return code === 0 ? stdout : `${code} ${stderr}`;
    };
    expect(await env("set", "team", "wait", "3")).toBe('2 wsfs: there is no environment "team": none is configured\n');
    await env("add", "team", "--base-url", URL, "--issuer", "https://login.example.com");
    expect(await env("set", "team", "cache-size", "20G")).toBe("");
    await env("set", "team", "allowOther", "true");
    expect(await env("show", "team")).toBe(
      [
        `baseUrl        ${URL}`,
        "cacheSize      20G",
        "allowOther     true",
        "issuer         https://login.example.com",
        "",
      ].join("\n"),
    );
    expect(JSON.parse(await env("show", "team", "--json"))).toEqual({
      name: "team",
      isSignedIn: false,
      baseUrl: URL,
      cacheSize: "20G",
      allowOther: true,
      issuer: "https://login.example.com",
    });
    expect(await env("set", "team", "cache-size", "x")).toMatch(
      /^2 wsfs: cacheSize: expected a number of bytes.*"x"\n$/,
    );
    expect(await env("set", "team", "size", "1")).toMatch(/^2 wsfs: expected one of the keys .*got "size"\n$/);
    await env("unset", "team", "cacheSize");
    expect(await env("show", "team")).not.toContain("cacheSize");
    await env("add", "uat", "--base-url", URL);
    await env("use", "uat");
    expect(await env()).toMatch(/^ {2}team .*\n\* uat /);
    await env("remove", "uat");
    expect(await env("show", "uat")).toBe('2 wsfs: there is no environment "uat": there is team\n');
  } finally {
    await place.cleanUp();
  }
}, 60_000);
