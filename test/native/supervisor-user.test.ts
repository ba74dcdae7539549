/**
 * The supervisor where mount(2) is not allowed, and for an ordinary user, who mounts by
 * fusermount3. The user's tests run in a mount namespace in which /dev/fuse is open to all, as it
 * is on desktops and servers, but not in every container.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, chownSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import {
  buildSupervisor,
  canMount,
  expectNothingLeft,
  isRoot,
  leaveMount,
  patiently,
  ready,
  type Setup,
  start,
  starved,
  useMount,
} from "./supervisor-trial.ts";

const NOBODY = 65534;
const asNobody = ["setpriv", "--reuid", String(NOBODY), "--regid", String(NOBODY), "--clear-groups"];
const hasFusermount = (process.env.PATH ?? "").split(":").some((folder) => existsSync(join(folder, "fusermount3")));
const othersAllowed =
  existsSync("/etc/fuse.conf") && /^user_allow_other\b/m.test(readFileSync("/etc/fuse.conf", "utf8"));

describe.skipIf(!isRoot)("where mounting is not possible (root, to make it so)", () => {
  it("says that there is no /dev/fuse", async () => {
    const emptyDev = 'mount -t tmpfs none /dev && mknod /dev/null c 1 3 && mknod /dev/urandom c 1 9 && exec "$@"';
    const trial = start("serve", { wrapper: ["unshare", "-m", "sh", "-c", emptyDev, "sh"] });
    expect(await trial.exited()).toBe(1);
    expect(trial.stderr()).toBe(
      "wsfs: cannot mount: there is no /dev/fuse (load it with 'modprobe fuse'; give a container '--device /dev/fuse')\n",
    );
    expect(trial.log()).toContain("line stop");
  });

  it.skipIf(!canMount)("says that root lacks the privilege", async () => {
    const trial = start("serve", { wrapper: ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"] });
    expect(await trial.exited()).toBe(1);
    expect(trial.stderr()).toBe(
      `wsfs: cannot mount on ${trial.dir}: not permitted here (root without CAP_SYS_ADMIN)\n`,
    );
  });

  it.skipIf(!canMount)("says to an ordinary user that fusermount3 is missing", async () => {
    const trial = start("serve", { owner: NOBODY, wrapper: [...asNobody, "env", "PATH=/nonexistent"] });
    expect(await trial.exited()).toBe(1);
    expect(trial.stderr()).toBe(
      "wsfs: cannot mount: fusermount3 is not installed (package fuse3); only root mounts without it\n",
    );
  });
});

describe.skipIf(!canMount || !hasFusermount)("as an ordinary user (fusermount3; root, to become one)", () => {
  const folder = mkdtempSync(join(tmpdir(), "wsfs-namespace-"));
  let holder: ChildProcess;
  let setup: Setup;

  beforeAll(async () => {
    const open = 'mknod -m 666 "$0" c 10 229 && mount --bind "$0" /dev/fuse && echo open && read line';
    holder = spawn("unshare", ["-m", "sh", "-c", open, join(folder, "fuse")], { stdio: ["pipe", "pipe", "inherit"] });
    const [said] = await once(holder.stdout ?? holder, "data");
    expect(String(said)).toBe("open\n");
    const namespace = holder.pid ?? 0;
    setup = { owner: NOBODY, namespace, wrapper: ["nsenter", "-m", "-t", String(namespace), ...asNobody] };
  });
  afterAll(async () => {
    await leaveMount(holder);
    rmSync(folder, { recursive: true });
  });

  it("detaches the mount once there is a process for fusermount3", async () => {
    chmodSync(folder, 0o755);
    const supervisor = buildSupervisor(folder, "no-process.c", ["fork", "kill"]);
    const file = join(folder, "no-process");
    const wrapper = [...(setup.wrapper ?? []), "env", `WSFS_NO_PROCESS_FILE=${file}`];
    const trial = start("serve", { ...setup, supervisor, wrapper });
    await ready(trial);
    writeFileSync(`${file}.below`, "");
    trial.supervisor.kill("SIGTERM");
    await starved(trial, 2);
    expect([trial.supervisor.exitCode, trial.mounts().length]).toEqual([null, 1]);
    rmSync(`${file}.below`);
    expect(await trial.exited()).toBe(0);
    expectNothingLeft(trial);
  });

  it("mounts with the options asked for, and detaches on SIGTERM", async () => {
    const trial = start("serve", {
      ...setup,
      options: ["--options", "default_permissions,max_read=65536", "--read-only"],
    });
    await ready(trial);
    const [mount, ...others] = trial.mounts();
    expect(others).toEqual([]);
    expect(mount).toMatchObject({ type: "fuse.wsfs", source: "a-workspace" });
    expect(mount?.options.split(",")).toEqual(expect.arrayContaining(["ro", "nosuid", "nodev"]));
    expect(mount?.superOptions).toContain(`user_id=${NOBODY},group_id=${NOBODY},default_permissions,max_read=65536`);
    expect(trial.log()).toContain(`line mounted ${mount?.minor}\n`);
    trial.supervisor.kill("SIGTERM");
    expect(await trial.exited()).toBe(0);
    expect(trial.stderr()).toBe("");
    expectNothingLeft(trial);
  });

  it("says that /dev/fuse is closed to users", async () => {
    const closed = 'mknod -m 600 "$0/closed" c 10 229 && mount --bind "$0/closed" /dev/fuse && exec "$@"';
    const wrapper = ["unshare", "-m", "sh", "-c", closed, folder, ...asNobody];
    const trial = start("serve", { owner: NOBODY, wrapper });
    expect(await trial.exited()).toBe(1);
    expect(trial.stderr()).toBe(
      "wsfs: cannot mount: /dev/fuse is closed to this user (root opens it to all with 'chmod 666 /dev/fuse')\n",
    );
  });

  it("answers busy to the daemon, and detaches a mount in use on SIGINT", async () => {
    const trial = start("serve", setup);
    await ready(trial);
    const user = await useMount(trial.dir, setup.wrapper);
    process.kill(trial.daemonPid(), "SIGUSR2");
    await vi.waitFor(() => expect(trial.log()).toContain("line busy Device or resource busy"), patiently);
    expect(trial.mounts()).toHaveLength(1);
    trial.supervisor.kill("SIGINT");
    expect(await trial.exited()).toBe(0);
    expect(trial.stderr()).toContain("programs still use");
    expectNothingLeft(trial);
    await leaveMount(user);
  });

  it("leaves nothing mounted when the daemon is killed", async () => {
    const trial = start("serve", setup);
    await ready(trial);
    process.kill(trial.daemonPid(), "SIGKILL");
    expect(await trial.exited()).toBe(1);
    expect(trial.stderr()).toContain("the daemon ended unexpectedly (signal 9)");
    expectNothingLeft(trial);
  });

  it.skipIf(othersAllowed)("says that /etc/fuse.conf allows no other users", async () => {
    const trial = start("serve", { ...setup, options: ["--options", "allow_other"] });
    expect(await trial.exited()).toBe(1);
    expect(trial.stderr()).toBe("wsfs: cannot mount for other users: /etc/fuse.conf has no line 'user_allow_other'\n");
    expectNothingLeft(trial);
  });

  it("says in one line what else fusermount3 has against it", async () => {
    const trial = start("serve", setup);
    chownSync(trial.dir, 0, 0);
    expect(await trial.exited()).toBe(1);
    expect(trial.stderr()).toMatch(/^wsfs: cannot mount on .*: fusermount3: user has no write access to .*\n$/);
    expectNothingLeft(trial);
  });
});
