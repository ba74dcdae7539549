/**
 * Finds missing Debian packages by a program or file of each, and installs them as root. This file uses only Node's own
 * modules.
 */
import { spawnSync } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { join } from "node:path";

/** The compiler for the other one of the two supported processors. */
const CROSS = {
  x64: { triple: "aarch64-linux-gnu", gcc: "gcc-aarch64-linux-gnu", libc: "libc6-dev-arm64-cross" },
  arm64: { triple: "x86_64-linux-gnu", gcc: "gcc-x86-64-linux-gnu", libc: "libc6-dev-amd64-cross" },
}[process.arch];

/** `when`: "build" = to compile native code, "pack" = to make the packages, "run" = to use wsfs, "test" = by the tests. */
const PACKAGES = [
  { name: "gcc", brings: "cc", when: "build" },
  { name: "g++", brings: "c++", when: "build" },
  { name: "make", brings: "make", when: "build" },
  { name: "python3", brings: "python3", when: "build" },
  { name: "libc6-dev", brings: "/usr/include/stdio.h", when: "build" },
  { name: "linux-libc-dev", brings: "/usr/include/linux/fuse.h", when: "build" },
  { name: "fuse3", brings: "fusermount3", when: "run" },
  { name: "mount", brings: "umount", when: "run" },
  { name: "attr", brings: "getfattr", when: "test" },
  { name: "chromium", brings: "chromium", when: "test" },
  { name: "libclang-rt-dev", brings: "clang", when: "test" },
  { name: "clang", brings: "clang", when: "test" },
  { name: "curl", brings: "curl", when: "test" },
  { name: "dbus", brings: "dbus-daemon", when: "test" },
  { name: "diffutils", brings: "diff", when: "test" },
  { name: "findutils", brings: "find", when: "test" },
  { name: "git", brings: "git", when: "test" },
  { name: "gnome-keyring", brings: "gnome-keyring-daemon", when: "test" },
  { name: "jq", brings: "jq", when: "test" },
  { name: "procps", brings: "ps", when: "test" },
  { name: "qemu-user-static", brings: "qemu-aarch64-static", when: "test" },
  { name: "rsync", brings: "rsync", when: "test" },
  { name: "sed", brings: "sed", when: "test" },
  { name: "sqlite3", brings: "sqlite3", when: "test" },
  { name: "tar", brings: "tar", when: "test" },
  { name: "util-linux", brings: "findmnt", when: "test" },
  { name: "vim", brings: "vim", when: "test" },
  ...(CROSS === undefined
    ? []
    : [
        { name: CROSS.gcc, brings: `${CROSS.triple}-gcc`, when: "pack" },
        { name: CROSS.libc, brings: `/usr/${CROSS.triple}/include/stdio.h`, when: "pack" },
      ]),
  // The package fuse-native has a build for this processor alone.
  ...(process.arch === "x64"
    ? [{ name: "libfuse2", brings: "/usr/lib/x86_64-linux-gnu/libfuse.so.2", when: "test" }]
    : []),
];

/** `toBuild`, `toPack`: native code must be compiled now, for this machine or for the package. The tests do both. */
export function missingDebianPackages({ toBuild, toPack, forTests }) {
  const asked = { build: toBuild || toPack || forTests, pack: toPack || forTests, run: true, test: forTests };
  return PACKAGES.filter(({ when, brings }) => asked[when] && !isThere(brings));
}

/**
 * Installs the packages as root. Names those that cannot be installed, with the command that would do it. Calls `fail`
 * only for packages that the build needs.
 */
export function installDebianPackages(missing, progress, fail) {
  let left = missing;
  let why = "not root";
  if (process.getuid?.() === 0) {
    progress(`Debian packages (apt-get install ${namesOf(missing)})`);
    why = aptGet(["update"]) ?? install(missing);
    if (why === undefined) return;
    // If apt-get cannot install one of several packages, it installs none.
    if (missing.length > 1) left = missing.filter((one) => !isThere(one.brings) && install([one]) !== undefined);
    if (left.length === 0) return;
  }
  const line = `missing: ${left.map(({ name, brings }) => `${brings} (${name})`).join(", ")}; ${why}. Install with: sudo apt-get install -y ${namesOf(left)}`;
  if (left.some(({ when }) => when === "build")) fail(line);
  process.stderr.write(`setup: ${line}\n`);
}

function namesOf(packages) {
  return packages.map(({ name }) => name).join(" ");
}

function install(packages) {
  return aptGet(["install", "-y", "--no-install-recommends", ...packages.map(({ name }) => name)]);
}

/** Returns the failure in one line; undefined: there was none. */
function aptGet(args) {
  const options = ["-q", "-o", "DPkg::Lock::Timeout=300", "-o", "Acquire::http::Timeout=20"];
  const { status, error, stdout, stderr } = spawnSync("apt-get", [...options, ...args], {
    env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
    stdio: ["ignore", "pipe", "pipe"],
    encoding: "utf8",
    maxBuffer: Number.POSITIVE_INFINITY,
  });
  if (status === 0) return undefined;
  if (error !== undefined) return error.code === "ENOENT" ? "no apt-get here" : error.message;
  process.stderr.write(`${stdout}${stderr}`);
  return `"apt-get ${args[0]}" failed with exit code ${status}`;
}

function isThere(brings) {
  if (brings.startsWith("/")) return isAccessible(brings, constants.R_OK);
  const folders = [...(process.env.PATH ?? "").split(":"), "/usr/sbin", "/sbin"];
  return folders.some((folder) => isAccessible(join(folder, brings), constants.X_OK));
}

function isAccessible(path, mode) {
  try {
    accessSync(path, mode);
    return true;
  } catch {
    return false;
  }
}
