/** The built program as a user calls it: each bad input gets one clear line and an exit code, and leaves nothing behind. */
import { chmodSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readGatewayRecord } from "../../src/daemon/gateway-record.ts";
import { check, createPlace, type Place } from "../support/wsfs.ts";

let place: Place;
beforeEach(() => {
  place = createPlace();
});
afterEach(() => place.cleanUp());

/** Exit code and the one line, which must be one. */
async function refused(...args: string[]): Promise<[number | null, string]> {
  const { code, stdout, stderr } = await place.wsfs(args);
  expect(stdout, args.join(" ")).toBe("");
  expect(stderr, args.join(" ")).toMatch(/^wsfs: [^\n]+\n$/);
  return [code, stderr.slice("wsfs: ".length, -1)];
}

const AT = ["--base-url", "http://127.0.0.1:9", "--workspace", "w"];

describe("the command line", () => {
  it("names what it does not know", async () => {
    expect(await refused()).toEqual([2, "expected a command; wsfs --help lists them"]);
    expect(await refused("mount", "d", "--cache-siz=3")).toEqual([2, "unknown argument: --cache-siz"]);
    expect(await refused("status", "a", "b")).toEqual([2, "unknown argument: b"]);
    expect(await refused("umount", "d", "--drain", "5")).toEqual([2, "unknown argument: 5"]);
    expect(await refused("gateway", "token", "--port", "1", "--data", "d")).toEqual([2, "unknown argument: --port"]);
    expect((await refused("mont", "d"))[0]).toBe(2);
  });

  it("takes a folder for one, whatever command its name is like", async () => {
    for (const dir of ["repo", "rest", "try", "./retry", "retr"]) {
      mkdirSync(place.path(dir), { recursive: true });
      const { code, stderr } = await place.wsfs(["queue", dir]);
      expect([code, stderr]).toEqual([3, `wsfs: nothing of wsfs is mounted at ${dir}\n`]);
    }
    expect(await refused("queue", "retry")).toEqual([2, "queue retry needs a folder: wsfs queue retry DIR"]);
    expect((await refused("gateway", "tokn"))[1]).toContain("Did you mean token?");
    expect((await refused("statsu"))[1]).toContain("Did you mean status?");
  });

  it("names what is missing or wrong", async () => {
    expect(await refused("status")).toEqual([2, "status needs a folder: wsfs status DIR"]);
    const [url, name, file] = ["base-url", "workspace", "token-file"].map(
      (flag) => `--${flag} (or WSFS_${flag.toUpperCase().replace("-", "_")})`,
    );
    expect(await refused("mount")).toEqual([2, `mount needs a folder DIR, ${url}, ${name} and ${file}`]);
    expect(await refused("mount", "--workspace=w")).toEqual([2, `mount needs a folder DIR, ${url} and ${file}`]);
    const other = 'or a gateway to sign in to ("wsfs env add", "wsfs login")';
    expect(await refused("mount", "d")).toEqual([2, `mount needs ${url}, ${name} and ${file}, ${other}`]);
    expect(await refused("mount", "d", "--base-url")).toEqual([2, "--base-url needs a value"]);
    expect((await refused("mount", "d", "--workspace", "w"))[1]).toContain("mount needs --base-url (or WSFS_BASE_URL)");
    expect((await refused("mount", "d", "--base-url", "example.com"))[1]).toContain('got "example.com"');
    expect((await refused("gateway", "--data", "d", "--fail-rate", "2"))[1]).toContain(
      "--fail-rate: expected a number",
    );
    expect((await refused("gateway", "token", "--data", "d", "--scope", "x"))[1]).toContain("--scope: expected one of");
  });

  it("does what it can in a folder that is gone", async () => {
    const inIt = (...args: string[]) => {
      const line = args.map((arg) => `'${arg}'`).join(" ");
      const script = `mkdir gone && cd gone && rmdir ../gone && '${process.execPath}' '${place.program}' ${line}`;
      return place.sh(script);
    };
    const gone = place.path("nothing");
    expect(check(await inIt("--version")).stdout).toMatch(/^\d+\.\d+/);
    expect(await inIt("status", gone, "--json")).toMatchObject({ code: 3, stdout: '{"mounted":false}\n' });
    const relative = await inIt("status", "here");
    const line = "wsfs: the current folder is not there any more: expected absolute paths\n";
    expect([relative.code, relative.stderr]).toEqual([2, line]);
    const data = await inIt("gateway", "token", "--data", "data");
    expect([data.code, data.stderr]).toEqual([2, line]);
  });

  it("shows help with examples for each command, and the release", async () => {
    for (const command of [
      ["start"],
      ["mount"],
      ["status"],
      ["queue"],
      ["queue", "retry"],
      ["drain"],
      ["reload"],
      ["umount"],
      ["gateway"],
      ["gateway", "token"],
    ]) {
      const { code, stdout } = await place.wsfs([...command, "--help"]);
      expect([code, stdout.split("\n")[0]]).toEqual([0, expect.stringContaining(`wsfs ${command.join(" ")}`)]);
      expect(stdout).toContain("Examples:");
      expect(stdout).not.toContain("until-unmounted");
      // As long as it is wide (scripts/bundle.mjs).
      expect(stdout).toMatch(/^[\n -~]*$/);
    }
    expect(check(await place.wsfs(["--version"])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  });

  it("shows where an error came from with --debug only", async () => {
    expect((await place.wsfs(["umount", "d", "--debug"])).stderr).toMatch(/^wsfs: nothing.*\n(.*\n)* {4}at /);
  });
});

it("of no mount, status, drain and umount end with 3", async () => {
  const { code, stdout } = await place.wsfs(["status", "d", "--json"]);
  expect([code, stdout]).toEqual([3, '{"mounted":false}\n']);
  expect((await place.wsfs(["status", "/"])).code).toBe(3);
  expect(await refused("drain", "d")).toEqual([3, "nothing of wsfs is mounted at d"]);
  expect(await refused("umount", "d", "--drain")).toEqual([3, "nothing of wsfs is mounted at d"]);
});

describe("a mount is refused", () => {
  it("on a folder that is absent, a file, full, or another mount", async () => {
    writeFileSync(place.path("file"), "");
    writeFileSync(place.path("home/x"), "");
    const rest = [...AT, "--token-file", "file"];
    expect(await refused("mount", "absent", ...rest)).toEqual([
      1,
      "absent is not there; make the folder first: mkdir -p absent",
    ]);
    expect(await refused("mount", "file", ...rest)).toEqual([1, "file is not a folder"]);
    expect(await refused("mount", "home", ...rest)).toEqual([1, "home is not empty (1 entry); choose an empty folder"]);
    expect((await refused("mount", "/proc", ...rest))[1]).toBe("/proc is already a mount (of type proc)");
  });

  it("without a token file that can be read, and warned about one that others may read", async () => {
    mkdirSync(place.path("d"));
    expect(await refused("mount", "d", ...AT, "--token-file", "t")).toEqual([1, "--token-file: t is not there"]);
    expect(await refused("mount", "d", ...AT, "--token-file", "d")).toEqual([1, "--token-file: d is not a file"]);
    writeFileSync(place.path("t"), "secret\n");
    chmodSync(place.path("t"), 0o644);
    const { code, stderr } = await place.wsfs(["mount", "d", ...AT, "--token-file", "t"]);
    expect(code).toBe(1);
    expect(stderr).toContain("wsfs: other users may read the token file t; chmod 600 t\n");
    expect(stderr).not.toContain("secret");
  });

  it("without /dev/fuse", async () => {
    mkdirSync(place.path("d"));
    const main = "$MAIN mount d --base-url http://127.0.0.1:9 --workspace w --token-file t";
    const hidden = `mkdir dev && mknod dev/null c 1 3 && mount --bind dev /dev && ${main.replace("$MAIN", '"$NODE" "$WSFS"')}`;
    const { code, stderr } = await place.sh(`unshare --mount sh -c '${hidden}'`, {
      env: { NODE: process.execPath, WSFS: new URL("../../dist/cli/main.js", import.meta.url).pathname },
    });
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^wsfs: \/dev\/fuse is not there: [^\n]+\n$/)]);
  });
});

describe("a gateway", () => {
  it("says first where it is and for whom, makes workspaces, and ends on a signal", async () => {
    const gateway = await place.gateway({ args: ["--workspace", "one", "--workspace", "two", "--quiet"] });
    expect(gateway.workspace).toBe("one");
    const get = (path: string, token: string) =>
      fetch(`${gateway.baseUrl}${path}`, { headers: { authorization: `Bearer ${token}` } });
    expect((await get("/v1/nodes?path=/", gateway.token)).status).toBe(200);
    const unbound = check(await place.wsfs(["gateway", "token", "--data", gateway.data])).stdout.trim();
    const listed = (await (await get("/v1/workspaces?orderBy=name", unbound)).json()) as { items: { name: string }[] };
    expect(listed.items.map(({ name }) => name)).toEqual(["one", "two"]);
    expect(await gateway.stop()).toMatchObject({ code: 0, stderr: "" });
    expect(readGatewayRecord(gateway.data)?.process).toBe(undefined);
  });

  it("gets its port and its first workspace again, and is refused a second time at once", async () => {
    const first = await place.gateway({ args: ["--workspace", "mine"] });
    expect((await refused("gateway", "--data", first.data))[1]).toBe(
      `${first.data} is already served by process ${first.pid} at ${first.baseUrl}`,
    );
    await first.stop();
    const second = await place.gateway();
    expect([second.baseUrl, second.workspace]).toEqual([first.baseUrl, "mine"]);
    await second.stop();
  });

  it("is refused an address or folder it cannot have", async () => {
    expect(await refused("gateway", "--data", "g", "--host", "192.0.2.1")).toEqual([
      1,
      "--host: 192.0.2.1 is no address of this machine",
    ]);
    expect((await refused("gateway", "--data", "/proc/g"))[1]).toContain("--data: /proc/g cannot be used");
    const { baseUrl } = await place.gateway();
    const port = new URL(baseUrl).port;
    expect(await refused("gateway", "--data", "other", "--port", port)).toEqual([
      1,
      `--port: ${port} is in use by another program`,
    ]);
  });

  it("issues tokens only for a folder and workspace there are", async () => {
    expect((await refused("gateway", "token", "--data", "absent"))[1]).toContain("no folder of a gateway");
    expect(existsSync(place.path("absent"))).toBe(false);
    const { data } = await place.gateway();
    expect((await refused("gateway", "token", "--data", data, "--workspace", "x"))[1]).toContain('"x"');
  });
});
