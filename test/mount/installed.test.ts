/** The package wsfs, installed into an empty project: what it needs is in it, and it serves a mount. */
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { install, makePackages } from "../support/packages.ts";
import { check, createPlace, type Place } from "../support/wsfs.ts";

const MODULES = fileURLToPath(new URL("../../node_modules", import.meta.url));

let folder = "";
let modules = "";
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
  const { product } = await makePackages(folder);
  // What its install script would compile for a minute and a half is taken from here.
  await install(project, product, "--ignore-scripts");
  modules = join(project, "node_modules");
  cpSync(join(MODULES, "better-sqlite3/build/Release"), join(modules, "better-sqlite3/build/Release"), {
    recursive: true,
  });
});

afterAll(async () => {
  await place?.cleanUp();
  rmSync(folder, { recursive: true, force: true });
});

it("nothing but SQLite is compiled where it is installed, of the version that was tested", () => {
  const { packages } = lockOf(join(folder, "project/package-lock.json"));
  const scripted = Object.entries(packages).filter(([, { hasInstallScript }]) => hasInstallScript === true);
  // fuse-native is optional.
  const [sqlite, library] = ["node_modules/better-sqlite3", "node_modules/fuse-native"];
  expect(scripted.map(([path]) => path)).toEqual([sqlite, library]);
  const own = lockOf(join(MODULES, ".package-lock.json")).packages;
  expect(packages[sqlite]?.version).toBe(own[sqlite]?.version);
  for (const name of ["typescript", "vitest", "rolldown"]) expect(existsSync(join(modules, name))).toBe(false);
});

it("has nothing of what made it", () => {
  const left = ["src/vfs", "scripts", "test", "dist/.tsbuildinfo", "dist/.setup", "native/build/Release/obj.target"];
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
