/** The package wsfs, installed into an empty project: what it needs is in it, and it serves a mount. */
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { run } from "../support/child.ts";
import { install, makePackages } from "../support/packages.ts";
import { check, createPlace, type Place } from "../support/wsfs.ts";
import { isThereAgain } from "./support/there-again.ts";

const OTHER_NODE = fileURLToPath(new URL("../../scripts/other-node.mjs", import.meta.url));
const PARTS = ["wsfs-commit-log.so", "wsfs-replayer", "wsfs-supervisor", "wsfs.node"];
/** In the header of an ELF file. */
const E_MACHINE = 18;
/** Of 2.x: what Node itself asks for. */
const OLDEST_GLIBC = 28;
/** What there is to install and to mount with, besides Node: no compiler, no make, no python. */
const TOOLS = [
  "bash",
  "cat",
  "env",
  "findmnt",
  "fusermount3",
  "ls",
  "mkdir",
  "mount",
  "mv",
  "rm",
  "sh",
  "sync",
  "umount",
  "uname",
];
const MODULES = fileURLToPath(new URL("../../node_modules", import.meta.url));

let folder = "";
let modules = "";
let product = "";
let place: Place | undefined;

interface Lock {
  readonly packages: Readonly<Record<string, { readonly version?: string; readonly hasInstallScript?: true }>>;
}

function lockOf(path: string): Lock {
  return JSON.parse(readFileSync(path, "utf8")) as Lock;
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "wsfs-installed-"));
  const project = join(folder, "project");
  ({ product } = await makePackages(folder));
  // What its install script would compile for a minute and a half is taken from here.
  await install(project, product, ["--ignore-scripts"]);
  modules = join(project, "node_modules");
  cpSync(join(MODULES, "better-sqlite3/build/Release"), join(modules, "better-sqlite3/build/Release"), {
    recursive: true,
  });
});

afterAll(async () => {
  await place?.cleanUp();
  rmSync(folder, { recursive: true, force: true });
});

it("brings its native parts for both processors, for each glibc that Node has", async (context) => {
  const prebuilds = join(modules, "wsfs/native/prebuilds");
  expect(readdirSync(prebuilds).sort()).toEqual(["linux-arm64", "linux-x64"]);
  for (const [machine, number] of [
    ["linux-x64", 62],
    ["linux-arm64", 183],
  ] as const) {
    expect(readdirSync(join(prebuilds, machine)).sort()).toEqual(PARTS);
    for (const part of PARTS) {
      const bytes = readFileSync(join(prebuilds, machine, part));
      expect([machine, part, bytes.toString("latin1", 1, 4), bytes.readUInt16LE(E_MACHINE)]).toEqual([
        ...[machine, part],
        ...["ELF", number],
      ]);
      const minors = [...bytes.toString("latin1").matchAll(/\0GLIBC_2\.(\d+)/g)].map(([, minor]) => Number(minor));
      expect(minors.filter((minor) => minor > OLDEST_GLIBC)).toEqual([]);
      if (part.includes(".")) expect(minors.length).toBeGreaterThan(0);
    }
  }
  const supervisor = join(prebuilds, "linux-arm64/wsfs-supervisor");
  const emulated = process.arch === "arm64" ? [supervisor] : ["qemu-aarch64-static", supervisor];
  const [file = "", ...args] = [...emulated, "--no-such-option"];
  const ended = await run(file, args).catch((error: Error) => error.message);
  if (typeof ended === "string") return context.skip(`the supervisor for arm64 was built and not run: ${ended}`);
  expect([ended.code, ended.stderr]).toEqual([2, expect.stringContaining("usage: wsfs-supervisor")]);
});

it("nothing but SQLite may be compiled where it is installed, of the version that was tested", () => {
  const { packages } = lockOf(join(folder, "project/package-lock.json"));
  const scripted = Object.entries(packages).filter(([, { hasInstallScript }]) => hasInstallScript === true);
  // Both are optional.
  const [sqlite, library] = ["node_modules/better-sqlite3", "node_modules/fuse-native"];
  expect(scripted.map(([path]) => path)).toEqual([sqlite, library]);
  const own = lockOf(join(MODULES, ".package-lock.json")).packages;
  expect(packages[sqlite]?.version).toBe(own[sqlite]?.version);
  for (const name of ["typescript", "vitest", "rolldown"]) expect(existsSync(join(modules, name))).toBe(false);
});

it("has nothing of what made it", () => {
  const left = ["src/vfs", "scripts", "test", "dist/.tsbuildinfo", "dist/.setup", "native/build", "native/addon"];
  expect(left.filter((path) => existsSync(join(modules, "wsfs", path)))).toEqual([]);
});

it("runs a gateway with its page, mounts it, and is the SDK", async () => {
  place = createPlace(join(modules, "wsfs/dist/cli/main.js"));
  const gateway = await place.gateway();
  const page = await fetch(`${gateway.baseUrl}/docs`);
  expect([page.status, await page.text()]).toEqual([200, expect.stringContaining("<html")]);
  const mount = await place.mount(gateway);
  check(await mount.sh("mkdir a && echo hello > a/b && sync a/b && cat a/b"));
  await mount.umount("--drain");
  const program = `
    import { connect, tokenFile } from "wsfs/client";
    const gateway = connect({ baseUrl: "${gateway.baseUrl}", credentials: tokenFile("${gateway.tokenFile}") });
    const { id } = await gateway.nodes.byPath("/a/b");
    process.stdout.write(await (await gateway.files.read(id)).text());
    await gateway.close();`;
  const args = ["--input-type=module", "--eval", program];
  expect(check(await place.run(process.execPath, args, { cwd: join(folder, "project") })).stdout).toBe("hello\n");
});

it("is installed where there is no compiler, and mounts there by the SQLite of Node", {
  timeout: 400_000,
}, async (context) => {
  const other = await run(process.execPath, [OTHER_NODE, "24"], { timeoutMs: 200_000 });
  if (other.code === 3) return context.skip(other.stderr.trim());
  const node = check(other).stdout.trim();
  const bin = join(folder, "bin");
  mkdirSync(bin);
  symlinkSync(node, join(bin, "node"));
  const found = check(await run("sh", ["-c", 'for tool; do command -v "$tool"; done', "sh", ...TOOLS])).stdout;
  for (const path of found.trim().split("\n")) symlinkSync(path, join(bin, basename(path)));
  symlinkSync(realpathSync(check(await run("sh", ["-c", "command -v npm"])).stdout.trim()), join(bin, "npm"));
  const project = join(folder, "without-compiler");
  await install(project, product, [], { PATH: bin, HOME: process.env.HOME });
  const installed = join(project, "node_modules");
  expect(existsSync(join(installed, "better-sqlite3"))).toBe(false);
  const there = createPlace(join(installed, "wsfs/dist/cli/main.js"), undefined, node);
  there.env.PATH = bin;
  try {
    await isThereAgain(there);
  } finally {
    await there.cleanUp();
  }
});
