import { describe, expect, it } from "vitest";
import { userFolders } from "../../src/cli/environment.ts";
import { Failure } from "../../src/cli/failure.ts";
import { FLAGS } from "../../src/cli/flags.ts";
import { COMMANDS, type CommandName, flagName, variableOf } from "../../src/cli/options.ts";
import { resolveValues } from "../../src/cli/resolve-values.ts";

const MOUNT = { DIR: "d", "base-url": "http://h", workspace: "w", "token-file": "t" };

function failure(action: () => unknown): Failure {
  try {
    action();
  } catch (error) {
    if (error instanceof Failure) return error;
    throw error;
  }
  throw new Error("no failure");
}

describe("values of a command", () => {
  it("are the defaults where nothing is given", () => {
    expect(resolveValues("mount", MOUNT, {})).toEqual({
      dir: "d",
      "base-url": "http://h",
      workspace: "w",
      "token-file": "t",
      "state-dir": undefined,
      "cache-size": 10 * 1024 ** 3,
      "names-ahead": 1_000_000,
      "read-only": false,
      "shorten-waits": 1,
      transport: "kernel",
      "no-passthrough": false,
      "no-restart": false,
      background: false,
      "allow-other": false,
      durability: "local",
      wait: 10,
      "log-level": "info",
      debug: false,
    });
  });

  it("come from the flag before the variable before the default", () => {
    const environment = { WSFS_WORKSPACE: "from variable", WSFS_CACHE_SIZE: "1K", WSFS_READ_ONLY: "1" };
    const { workspace, ...given } = MOUNT;
    expect(resolveValues("mount", { ...given, workspace }, environment)).toMatchObject({
      workspace,
      "cache-size": 1024,
      "read-only": true,
    });
    expect(resolveValues("mount", given, environment).workspace).toBe("from variable");
    expect(resolveValues("mount", { ...MOUNT, "cache-size": "2K" }, environment)["cache-size"]).toBe(2048);
  });

  it("name the flag or variable at fault, what was expected and what came", () => {
    const bySize = failure(() => resolveValues("mount", { ...MOUNT, "cache-size": "3X" }, {}));
    expect(bySize.exitCode).toBe(2);
    expect(bySize.message).toBe('--cache-size: expected a number of bytes such as 500M or 2G, got "3X"');
    expect(failure(() => resolveValues("mount", MOUNT, { WSFS_CACHE_SIZE: "x" })).message).toMatch(
      /^WSFS_CACHE_SIZE: /,
    );
    expect(failure(() => resolveValues("gateway token", {}, {})).message).toContain("--data (or WSFS_DATA)");
    expect(failure(() => resolveValues("mount", { ...MOUNT, workspace: ["a", "b"] }, {})).message).toContain(
      "only once",
    );
    expect(failure(() => resolveValues("mount", { ...MOUNT, DIR: "" }, {})).exitCode).toBe(2);
  });

  it("of --drain are true, seconds or nothing", () => {
    expect(resolveValues("umount", { DIR: "d" }, {}).drain).toBe(undefined);
    expect(resolveValues("umount", { DIR: "d", drain: "" }, {}).drain).toBe(true);
    expect(resolveValues("umount", { DIR: "d", drain: "7" }, {}).drain).toBe(7);
  });

  it("of --workspace are several for a gateway, one for its token", () => {
    expect(resolveValues("gateway", { data: "g", workspace: ["a", "b"] }, {})["workspace-list"]).toEqual(["a", "b"]);
    expect(resolveValues("gateway token", { data: "g", workspace: "a" }, {}).workspace).toBe("a");
  });
});

it("reads a size in bytes, K, M, G and T", () => {
  const sizeOf = (text: string) => resolveValues("mount", { ...MOUNT, "cache-size": text }, {})["cache-size"];
  expect(sizeOf("0")).toBe(0);
  expect(sizeOf("500M")).toBe(500 * 1024 ** 2);
  expect(sizeOf("1.5GiB")).toBe(1.5 * 1024 ** 3);
  for (const bad of ["-1", "", "1e3", "1 2", "9999999T", "G"])
    expect(() => sizeOf(bad)).toThrow("expected a number of bytes");
});

it("takes only plain URLs of http and https, without a slash at the end", () => {
  const urlOf = (text: string) => resolveValues("mount", { ...MOUNT, "base-url": text }, {})["base-url"];
  expect(urlOf("https://h/prefix/")).toBe("https://h/prefix");
  for (const bad of ["h", "ftp://h", "http://u:p@h", "http://h/?a=b", "http://h/#a"]) {
    expect(() => urlOf(bad)).toThrow("expected a URL");
  }
});

it("every flag belongs to a command, has help, and one variable of its own", () => {
  const used = new Set(Object.values(COMMANDS).flatMap((command): readonly string[] => command.flags));
  expect([...used].sort()).toEqual(Object.keys(FLAGS).sort());
  const variables = Object.keys(FLAGS)
    .map((name) => variableOf(name as keyof typeof FLAGS))
    .filter(Boolean);
  expect(new Set(variables).size).toBe(variables.length);
  for (const [name, command] of Object.entries(COMMANDS)) {
    const names = command.flags.map(flagName);
    expect(new Set(names).size, name).toBe(names.length);
    expect(command.examples.length, name).toBeGreaterThan(0);
    const hidden: readonly string[] = "hidden" in command ? command.hidden : [];
    for (const flag of command.flags) if (!hidden.includes(flag)) expect(FLAGS[flag].help, flag).not.toBe("");
  }
  expect(Object.keys(COMMANDS) satisfies string[] as CommandName[]).toContain("gateway token");
});

describe("folders of the user", () => {
  it("follow XDG, and are the same for root by whatever way one became root", () => {
    const environment = { HOME: "/home/a", XDG_RUNTIME_DIR: "/run/user/7", XDG_STATE_HOME: "relative" };
    const withSession = {
      boot: () => "0123456789",
      ownerOf: (path: string) => (path === "/run/user/7" ? 7 : undefined),
    };
    const withoutSession = { ...withSession, ownerOf: () => undefined };
    const fallback = "/home/a/.local/state/wsfs/run/01234567";
    const session = { runtime: "/run/user/7/wsfs", runtimes: ["/run/user/7/wsfs", fallback] };
    expect(userFolders(environment, 7, withSession)).toEqual({
      home: "/home/a",
      state: "/home/a/.local/state/wsfs",
      data: "/home/a/.local/share/wsfs",
      config: "/home/a/.config/wsfs",
      ...session,
    });
    expect(userFolders(environment, 0, withSession).runtimes).toEqual(["/run/wsfs"]);
    expect(userFolders({ HOME: "/home/a" }, 7, withoutSession)).toMatchObject({
      runtime: fallback,
      runtimes: [fallback],
    });
    // Run by cron; from the shell of another user.
    for (const XDG_RUNTIME_DIR of ["", "/run/user/8"]) {
      expect(userFolders({ ...environment, XDG_RUNTIME_DIR }, 7, withSession)).toMatchObject(session);
    }
    expect(userFolders({ ...environment, WSFS_RUNTIME_DIR: "/r" }, 0).runtimes).toEqual(["/r"]);
  });
});
