/** A copy of the built program whose supervisor has its fault points: the product's has none. */
import { execFileSync } from "node:child_process";
import { copyFileSync, cpSync, mkdirSync, readdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const PROJECT = fileURLToPath(new URL("../../../", import.meta.url));
const FLAGS = ["-std=gnu11", "-O1", "-D_GNU_SOURCE", "-DWSFS_STEPS"];

/** Made below `folder`; answers the path of the command. */
export function buildWithSteps(folder: string): string {
  const release = "native/build/Release";
  mkdirSync(join(folder, release), { recursive: true });
  cpSync(join(PROJECT, "dist"), join(folder, "dist"), { recursive: true });
  for (const file of ["package.json", join(release, "wsfs.node"), join(release, "wsfs-commit-log.so")]) {
    copyFileSync(join(PROJECT, file), join(folder, file));
  }
  symlinkSync(join(PROJECT, "node_modules"), join(folder, "node_modules"));
  const supervisor = join(PROJECT, "native/supervisor");
  const sources = readdirSync(supervisor).filter((name) => name.endsWith(".c"));
  const output = join(folder, release, "wsfs-supervisor");
  execFileSync("cc", [...FLAGS, "-o", output, ...sources], { cwd: supervisor });
  return join(folder, "dist/cli/main.js");
}
