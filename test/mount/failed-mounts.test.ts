/** A mount that does not come to be: it says what would have helped, and leaves no folder that was not there before. */
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { listServed } from "../../src/daemon/runtime-folder.ts";
import { finished, until } from "../support/child.ts";
import { check, createPlace, mountsBelow, type Place, type TestGateway } from "../support/wsfs.ts";

let place: Place;
beforeEach(() => {
  place = createPlace();
  mkdirSync(place.path("d"));
});
afterEach(() => place.cleanUp());

const from = ({ baseUrl, workspace, tokenFile }: TestGateway) => [
  ...["--base-url", baseUrl, "--workspace", workspace, "--token-file", tokenFile],
];

/** Everything below the place, but in mounts, which nobody here touches, and in what serves them. */
function tree(folder = place.folder): string[] {
  const served = listServed(place.path("run")).flatMap(({ mountpoint, stateDir }) => [mountpoint, stateDir]);
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if ([...served, place.path("gateway"), place.path("data/wsfs/gateway")].includes(path)) return [];
    return entry.isDirectory() ? [`${path}/`, ...tree(path)] : [path];
  });
}

async function fails(args: readonly string[]): Promise<string> {
  const before = tree();
  const { code, stderr } = await place.wsfs(args);
  expect(code, stderr).toBe(1);
  expect(tree()).toEqual(before);
  return stderr;
}

it("names the workspaces there are for one there is not, with a state dir and without", async () => {
  const gateway = await place.gateway({ args: ["--workspace", "one", "--workspace", "two"] });
  const args = ["--data", gateway.data, "--scope", "account.workspace.read", "node.node.read-all", "node.file.read"];
  const token = check(await place.wsfs(["gateway", "token", ...args])).stdout;
  writeFileSync(gateway.tokenFile, token, { mode: 0o600 });
  for (const more of [[], ["--state-dir", "s"], ["--background"]]) {
    const said = await fails(["mount", "d", ...from({ ...gateway, workspace: "tow" }), ...more]);
    expect(said).toBe('wsfs: no workspace "tow" is visible to this token; visible: "one", "two"\n');
  }
});

describe("leaves nothing behind", () => {
  it.each([
    [
      "a token that is refused",
      async (gateway: TestGateway) => writeFileSync(gateway.tokenFile, "x\n", { mode: 0o600 }),
    ],
    ["a gateway that is not there", async (gateway: TestGateway) => void (await gateway.stop())],
  ])("of %s, with a state dir and without", async (_, spoil) => {
    const gateway = await place.gateway();
    await spoil(gateway);
    mkdirSync(place.path("empty"));
    for (const more of [[], ["--state-dir", "s"], ["--state-dir", "empty"], ["--state-dir", "a/b/c", "--background"]]) {
      expect(await fails(["mount", "d", ...from(gateway), ...more])).toMatch(/^wsfs: /);
    }
  });

  it("but what was in a state dir before", async () => {
    const gateway = await place.gateway();
    const mount = await place.mount(gateway);
    check(await mount.sh("echo a > a"));
    await mount.umount();
    writeFileSync(gateway.tokenFile, "x\n", { mode: 0o600 });
    const other = { ...gateway, workspace: "other" };
    await place.wsfs(["mount", "d", ...from(other), "--state-dir", mount.stateDir]);
    expect(readdirSync(mount.stateDir)).toContain("metadata.db");
    check(await place.wsfs(["mount", "d", ...from(gateway), "--state-dir", mount.stateDir, "--background"]));
    expect(check(await place.sh("cat d/a")).stdout).toBe("a\n");
  });

  it("of a start whose folder, data and mount were to be made", async () => {
    writeFileSync(place.path("file"), "");
    for (const more of [["--background"], []]) {
      expect(await fails(["start", "new/deep", "--state-dir", "file", ...more])).toContain("the state dir");
      expect(existsSync(place.path("data"))).toBe(false);
    }
  });

  it("of a mount that is told to end while it starts", async () => {
    const gateway = await place.gateway();
    const before = tree();
    // It is asked again for longer than the test lasts.
    await gateway.stop();
    const command = place.spawnWsfs(["mount", "d", ...from(gateway), "--state-dir", "s", "--wait", "1000"]);
    const ended = finished(command);
    let said = "";
    command.stderr?.on("data", (text) => {
      said += text;
    });
    await until("it waits for the gateway", () => said.includes("asking again"));
    command.kill("SIGINT");
    expect((await ended).code).toBe(1);
    expect(mountsBelow(place.folder)).toEqual([]);
    expect(tree()).toEqual(before);
  });
});

describe("a second mount of a workspace", () => {
  it("says where it is mounted already and what makes another, which then does", async () => {
    const gateway = await place.gateway();
    mkdirSync(place.path("e"));
    check(await place.wsfs(["mount", "d", ...from(gateway), "--background"]));
    const said = await fails(["mount", "e", ...from(gateway), "--background"]);
    expect(said).toMatch(
      /^wsfs: "workspace" is mounted already at \S+\/d \(the state folder \S+ is in use by process \d+\); /,
    );
    expect(said).toContain(`at ${place.path("d")} (`);
    expect(said).toMatch(/; --state-dir with a new folder makes another mount\n$/);
    check(await place.wsfs(["mount", "e", ...from(gateway), "--background", "--state-dir", "s"]));
  });

  it("by wsfs start says the same, and its folder is gone again", async () => {
    check(await place.wsfs(["start", "d", "--background"]));
    const said = await fails(["start", "e", "--background"]);
    expect(said).toContain(`"workspace" is mounted already at ${place.path("d")} (`);
    check(await place.wsfs(["umount", "d"]));
  });
});
