/**
 * wsfs for a user who is not root: every command works without anything of root but fusermount3, nobody
 * else looks in unless told to, and what cannot be had is refused in one clear line.
 */
import { once } from "node:events";
import { chmodSync, chownSync, mkdirSync } from "node:fs";
import { afterEach, describe, expect, it } from "vitest";
import { isAlive } from "../../src/daemon/processes.ts";
import { listServed } from "../../src/daemon/runtime-folder.ts";
import { type Finished, run, until } from "../support/child.ts";
import { becomeOrdinaryUser, NOBODY, type OrdinaryUser, whyNoOrdinaryUser } from "../support/ordinary-user.ts";
import { check, createPlace, mountsBelow, type Place } from "../support/wsfs.ts";

const STRANGER = 54321;

/** argv: a folder, a name in it, another folder. A mount by that name; asked whether it is alive, the other folder takes the place of its own. */
const DIES_WHEN_ASKED = `
import array, os, socket, struct, subprocess, sys
folder, name, other = sys.argv[1:]
os.makedirs(f"{folder}/{name}")
ours, theirs = socket.socketpair()
mounting = ["fusermount3", "-o", "subtype=wsfs,fsname=workspace,nosuid,nodev", "--", f"{folder}/{name}"]
mounted = subprocess.Popen(mounting, env={**os.environ, "_FUSE_COMMFD": str(theirs.fileno())}, pass_fds=[theirs.fileno()])
_, [(_, _, number)], _, _ = ours.recvmsg(1, socket.CMSG_SPACE(4))
device = array.array("i", number)[0]
mounted.wait()
print("mounted", flush=True)
while True:
    request = os.read(device, 1 << 20)
    _, opcode, unique = struct.unpack("<IIQ", request[:16])
    if opcode == 26:
        init = struct.pack("<IIIIHHII", 7, 31, 65536, 0, 12, 9, 65536, 1).ljust(64, b"\\0")
        os.write(device, struct.pack("<IiQ", 16 + len(init), 0, unique) + init)
    elif opcode == 17:
        os.rename(folder, folder + ".away")
        os.symlink(other, folder)
        break
    else: os.write(device, struct.pack("<IiQ", 16, -38, unique))
`;

let user: OrdinaryUser;
let place: Place;
async function live(fuseConf = ""): Promise<void> {
  user = await becomeOrdinaryUser(fuseConf);
  place = createPlace(undefined, user);
  chmodSync(place.folder, 0o755);
}
afterEach(async () => {
  await place.cleanUp();
  await user.end();
});

/** Somebody else in the same mount namespace. */
function another(uid: number, script: string): Promise<Finished> {
  const become = ["--reuid", String(uid), "--regid", String(uid), "--clear-groups", "bash", "-c", script];
  return run(...user.asRoot(place.folder, "setpriv", become), { timeoutMs: 20_000 });
}

const whyNot = whyNoOrdinaryUser();
describe.skipIf(whyNot !== undefined)(`an ordinary user${whyNot === undefined ? "" : ` (${whyNot})`}`, () => {
  it("starts, looks, drains and unmounts with a home alone, and nobody else gets in, root neither", async () => {
    await live();
    // Neither a login session's runtime folder nor any other choice.
    for (const name of ["XDG_STATE_HOME", "XDG_DATA_HOME", "WSFS_RUNTIME_DIR"]) delete place.env[name];
    const started = check(await place.wsfs(["start", "work", "--background", "--json"]));
    const { mountpoint } = JSON.parse(started.stdout) as { mountpoint: string };
    check(await place.sh("cd work && mkdir d && echo kept > d/f && chmod 644 d/f && ln -s d/f l && mv d e"));
    expect((await place.sh("stat -c '%u %g' work/e/f")).stdout).toBe(`${NOBODY} ${NOBODY}\n`);
    for (const uid of [0, STRANGER]) {
      const refused = await another(uid, "ls work; cat work/e/f; stat work; touch work/new; echo > work/e/f");
      expect([refused.stdout, refused.stderr.match(/Permission denied/g)?.length]).toEqual(["", 5]);
    }
    expect((await place.wsfs(["queue", "work"])).code).toBe(0);
    check(await place.wsfs(["drain", "work", "--timeout", "60"], { timeoutMs: 90_000 }));
    const human = check(await place.wsfs(["status", "work"])).stdout;
    expect(human).toContain("only root may use it (CAP_SYS_ADMIN)");
    const state = JSON.parse(check(await place.wsfs(["status", "work", "--json"])).stdout) as Record<string, unknown>;
    expect(state).toMatchObject({ mountpoint, passthrough: false, dirty: 0 });
    expect(
      (await place.sh("grep -c 'the kernel takes no local file' home/.local/state/wsfs/*/daemon.log")).stdout,
    ).toBe("0\n");
    const modes = check(await place.sh("find home -printf '%m %u\\n' | sort -u"));
    // Of all that is in the home nothing is for others, but the folders above ours.
    expect(modes.stdout).not.toMatch(/^[0-7]+[1-7] (?!nobody)|root/m);
    const asRoot = await run(...user.asRoot(place.folder, process.execPath, [place.program, "status", "work"]));
    expect([asRoot.code, asRoot.stdout]).toEqual([
      3,
      `work: user ${NOBODY} mounted it, and only that user can ask its daemon\n`,
    ]);
    check(await place.wsfs(["umount", "work"]));
    expect(mountsBelow(place.folder, user)).toEqual([]);
    await place.wsfs(["start", "work", "--background"]);
    expect((await place.sh("cat work/l work/e/f")).stdout).toBe("kept\n");
  });

  it("lets others in only where /etc/fuse.conf allows it, and then as far as modes do", async () => {
    await live();
    const gateway = await place.gateway();
    await expect(place.mount(gateway, { args: ["--allow-other"] })).rejects.toThrow(
      /^exit code 1 .*\n\nwsfs: cannot mount for other users: \/etc\/fuse\.conf has no line 'user_allow_other'\n$/,
    );
    expect(mountsBelow(place.folder, user)).toEqual([]);
    await place.cleanUp();
    await user.end();

    await live("user_allow_other\n");
    const mount = await place.mount(await place.gateway(), { args: ["--allow-other"] });
    check(
      await mount.sh("umask 022; echo s > secret; chmod 600 secret; echo o > open; mkdir -m 777 all; mkdir -m 700 own"),
    );
    const stranger = await another(
      STRANGER,
      "cd mount; cat open; for c in 'cat secret' 'ls own' 'rm -f open' 'chmod 777 open' 'touch new' 'tee open'; do $c < /dev/null 2> /dev/null && echo \"did $c\"; done; echo theirs > all/f; cat all/f",
    );
    expect([stranger.stdout, stranger.stderr]).toEqual(["o\ntheirs\n", ""]);
    expect((await another(0, "cat mount/secret && ls mount/own && cat mount/all/f")).stdout).toBe("s\ntheirs\n");
    // Every node shows as the mounting user's.
    expect((await mount.sh("stat -c %u all/f open")).stdout).toBe(`${NOBODY}\n${NOBODY}\n`);
    await mount.umount("--drain=60");
  });

  it("finds a mount that lost everybody, takes it off and goes on with what was written", async () => {
    await live();
    const gateway = await place.gateway();
    const mount = await place.mount(gateway);
    check(await mount.sh("echo kept > f"));
    const [record] = listServed(place.path("run"));
    if (record === undefined) throw new Error("no daemon");
    const crash = async (pids: readonly number[]) => {
      process.kill(pids[0] ?? 0, "SIGSTOP");
      for (const pid of pids.toReversed()) process.kill(pid, "SIGKILL");
      await until("both are gone", () => listServed(place.path("run")).length === 0);
    };
    await crash([mount.supervisorPid, mount.pid]);
    expect([isAlive(record.daemon), mountsBelow(place.folder, user).length]).toEqual([false, 1]);
    const again = await place.mount(gateway);
    expect((await again.sh("cat f")).stdout).toBe("kept\n");
    // Root may take such a mount off, and asks the kernel in the user's name whether it is dead.
    const umount = () => run(...user.asRoot(place.folder, process.execPath, [place.program, "umount", "mount"]));
    expect((await umount()).stderr).toContain("only that user can ask its daemon");
    await crash([again.supervisorPid, again.pid]);
    check(await umount());
    expect(mountsBelow(place.folder, user)).toEqual([]);
  });

  it("is not kept waiting by a daemon that is stopped, though only root may break a mount off by force", async () => {
    await live();
    const mount = await place.mount(await place.gateway(), { args: ["--shorten-waits", "5"] });
    process.kill(mount.pid, "SIGSTOP");
    const { signal } = await place.sh("ls mount mount/none; touch mount/f", { timeoutMs: 60_000 });
    expect(signal).toBe(null);
  });

  it("is told in one line what is missing, and that a state dir is somebody else's", async () => {
    await live();
    const gateway = await place.gateway();
    mkdirSync(place.path("dir"));
    user.own(place.path("dir"));
    mkdirSync(place.path("theirs"));
    chownSync(place.path("theirs"), STRANGER, STRANGER);
    const { baseUrl, workspace, tokenFile } = gateway;
    const mount = ["mount", "dir", "--base-url", baseUrl, "--workspace", workspace, "--token-file", tokenFile];
    const refusal = async (args: readonly string[], env: NodeJS.ProcessEnv = {}) => {
      const { code, stdout, stderr } = await place.wsfs([...mount, "--background", ...args], { env });
      expect([code, stdout]).toEqual([1, ""]);
      return stderr;
    };
    expect(await refusal(["--state-dir", "theirs"])).toBe(
      `wsfs: the state dir ${place.path("theirs")} is not a mount's: it belongs to user ${STRANGER}, and is for that user alone\n`,
    );
    expect(await refusal([], { WSFS_RUNTIME_DIR: place.path("theirs") })).toMatch(
      /^wsfs: the runtime folder \S+ must be a folder of yours; it belongs to user 54321\n$/,
    );
    const command = [process.execPath, place.program, ...mount].map((word) => `'${word}'`).join(" ");
    const without = await place.sh(`PATH=/nonexistent exec ${command}`);
    expect([without.code, without.stderr]).toEqual([
      1,
      "wsfs: fusermount3 is not installed (package fuse3); only root mounts without it\n",
    ]);
  });

  it("sees each change of the root at once: before it looked in, after, and by the next daemon", async () => {
    await live();
    const gateway = await place.gateway();
    const [, { pid, sh }] = [await place.mount(gateway, { name: "one" }), await place.mount(gateway, { name: "two" })];
    const change = async (mode: string) => {
      check(await place.sh(`chmod ${mode} one`));
      await until(
        `the other mount shows ${mode}`,
        async () => (await place.sh("stat -c %a two")).stdout === `${mode}\n`,
      );
    };
    await change("750");
    check(await sh("ls"));
    await change("711");
    await change("700");
    process.kill(pid, "SIGKILL");
    await change("755");
  });

  it("goes on as before once the state dir may be looked into again", async () => {
    await live();
    const gateway = await place.gateway();
    const { stateDir, umount, sh } = await place.mount(gateway);
    check(await sh("echo before > before && sync before"));
    // Meanwhile new files cannot be made; what is open is written, and its close looks for the state dir.
    const meanwhile = await sh(`
      exec 3> open && chmod 000 '${stateDir}' && echo one >&3 && (echo > new) 2>&1
      exec 3>&- && mv before moved
      chmod 700 '${stateDir}' && echo after > after && echo two >> open && cat moved open after`);
    expect(check(meanwhile).stdout).toMatch(/new: Input\/output error\nbefore\none\ntwo\nafter\n$/);
    await umount("--drain=60");
    const another = await place.mount(gateway, { name: "another" });
    expect(check(await another.sh("cat after moved open && ls")).stdout).toBe(
      "after\nbefore\none\ntwo\nafter\nmoved\nopen\n",
    );
  });

  it("root takes off what the user has mounted, and nothing else, wherever the path to it leads by then", async () => {
    await live();
    const asRoot = (program: string, ...args: string[]) => run(...user.asRoot(place.folder, program, args));
    check(await asRoot("bash", "-c", "mkdir -p roots/x && mount -t tmpfs roots roots/x && touch roots/x/kept"));
    try {
      const dead = place.spawn("/usr/bin/python3", ["-c", DIES_WHEN_ASKED, "own", "x", place.path("roots")]);
      const ended = once(dead, "exit");
      await once(dead.stdout ?? dead, "data");
      const said = await asRoot(process.execPath, place.program, "umount", place.path("own/x"));
      expect(await ended).toEqual([0, null]);
      expect(said).toMatchObject({ code: 1, stderr: expect.stringContaining("cannot be detached") });
      expect(check(await asRoot("ls", "roots/x")).stdout).toBe("kept\n");
      // Where it is, it can be taken off.
      check(await place.sh("rm own && mv own.away own"));
      const again = await asRoot(process.execPath, place.program, "umount", place.path("own/x"));
      expect(again).toMatchObject({ code: 0, stdout: expect.stringContaining("its daemon was gone") });
      expect(mountsBelow(place.folder, user)).toEqual([]);
    } finally {
      await asRoot("umount", "-l", "roots/x");
    }
  });

  it("cannot have root's commands ask a daemon of root's in the place of the user's own", async () => {
    await live();
    const roots = createPlace();
    const asRoot = (program: string, ...args: string[]) => run(...user.asRoot(place.folder, program, args));
    try {
      const [mine, theirs] = [await roots.mount(await roots.gateway()), await place.mount(await place.gateway())];
      // Where root looks for daemons of users.
      const session = `/run/user/${NOBODY}`;
      check(await asRoot("mkdir", "-p", "/run/user"));
      check(await asRoot("mount", "-t", "tmpfs", "sessions", "/run/user"));
      check(await asRoot("mkdir", "-p", `${session}/wsfs`));
      check(await asRoot("mount", "--bind", place.path("run"), `${session}/wsfs`));
      // Else they put their socket back.
      for (const pid of [theirs.supervisorPid, theirs.pid]) process.kill(pid, "SIGSTOP");
      const socket = `run/${theirs.pid}.sock`;
      check(await place.sh(`mv ${socket} away && ln -s '${roots.path(`run/${mine.pid}.sock`)}' ${socket}`));
      for (const command of [["umount"], ["drain"], ["queue"], ["status"], ["reload"]]) {
        const said = await asRoot(process.execPath, place.program, ...command, theirs.dir);
        expect([said.code, said.stdout]).toEqual([1, ""]);
        expect(said.stderr).toContain(`is a symbolic link of user ${NOBODY}, expected a socket of user ${NOBODY}\n`);
      }
      expect(await mine.status()).toMatchObject({ mounted: true, pid: mine.pid });
      expect(mountsBelow(place.folder, user)).toHaveLength(1);
      check(await place.sh(`rm ${socket} && mv away ${socket}`));
      for (const pid of [theirs.supervisorPid, theirs.pid]) process.kill(pid, "SIGCONT");
      check(await asRoot(process.execPath, place.program, "umount", theirs.dir));
      expect(mountsBelow(place.folder, user)).toEqual([]);
    } finally {
      await roots.cleanUp();
    }
  });
});
