/**
 * Real owners on root's mount that other users have access to: makers own what they make, chown and permissions are those of
 * a disk (the plain folder beside it is the control), and owners are on other mounts by name. Needs root.
 */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { check, createPlace, type Place, type TestGateway, type TestMount } from "../support/wsfs.ts";

/** Accounts of every Debian, and numbers that are nobody's. */
const DAEMON = 1;
const STRANGER = 54321;
const GROUP = 54322;

let place: Place;
beforeEach(async () => {
  place = createPlace();
  await place.sh("chmod 755 .");
});
afterEach(() => place.cleanUp());

/** The lines that a script says as another user: `groups` are supplementary. */
async function as(uid: number, groups: readonly number[], script: string): Promise<string[]> {
  const others = groups.length === 0 ? ["--clear-groups"] : ["--groups", groups.join(",")];
  const become = ["--reuid", String(uid), "--regid", String(uid), ...others];
  const { stdout, stderr } = await place.run("setpriv", [...become, "bash", "-c", script]);
  return `${stdout}${stderr}`.split("\n").slice(0, -1);
}

/** What a disk does, one line each. */
async function asOnDisk(folder: string): Promise<Record<string, string[]>> {
  check(
    await place.sh(`cd '${folder}' && mkdir -m 1777 pub && mkdir -m 2777 shared && chgrp ${GROUP} shared
      echo r > roots && chmod 644 roots && echo g > groups && chgrp ${GROUP} groups && chmod 640 groups
      echo r > pub/roots && chmod 666 pub/roots && touch given set && chown ${STRANGER}:${GROUP} given
      chmod 6755 set && chown ${STRANGER} set`),
  );
  const at = `cd '${folder}/pub' || exit; export HOME=/nonexistent;`;
  return {
    made: await as(
      STRANGER,
      [],
      `${at} umask 077; echo hi > f; cat f; mkdir d; echo in > d/f; cat d/f; ln -s f l; mkfifo p; ln f h
       stat -c '%n %u:%g %a %h' f d l p; chmod 640 f && touch f && stat -c %a f`,
    ),
    programs: await as(
      STRANGER,
      [],
      `${at} t=$(mktemp -d -p .) && echo ok > $t/f && cat $t/f; git init -q r 2>&1 && git -C r status --short
       python3 -c 'import tempfile; f = tempfile.NamedTemporaryFile(dir="."); open(f.name).read(); print("ok")'`,
    ),
    shared: await as(
      STRANGER,
      [],
      `cd '${folder}/shared' && umask 022 && touch f && mkdir d && touch d/f && stat -c '%n %u:%g %a' f d d/f`,
    ),
    sticky: await as(
      DAEMON,
      [],
      `${at} rm -f f roots; mv f g; rm -rf d; touch m && rm m && echo gone; chmod 600 f; ls f roots | wc -l
       (: > roots) 2> /dev/null; echo $?; cat f`,
    ),
    groups: [
      ...(await as(STRANGER, [GROUP], `cd '${folder}'; cat groups; echo x > groups; test -w groups; echo $?`)),
      ...(await as(STRANGER, [], `cd '${folder}'; cat groups; test -r groups; echo $?`)),
    ],
    chown: await as(
      STRANGER,
      [GROUP],
      `cd '${folder}'; stat -c '%n %u:%g %a' given set; chgrp ${STRANGER} given; chmod 6770 given; chgrp ${GROUP} given
       stat -c '%u:%g %a' given; chmod 2640 given; chgrp ${STRANGER} given; stat -c '%u:%g %a' given
       chgrp 0 given; chown ${DAEMON} given; chown ${DAEMON} roots; chgrp ${GROUP} roots; stat -c '%u:%g %a' given roots`,
    ),
  };
}

const plain = (lines: Record<string, string[]>, folder: string) =>
  JSON.parse(JSON.stringify(lines).replaceAll(folder, "")) as typeof lines;

describe("on root's mount with --allow-other", () => {
  it.each([[], ["--no-passthrough"]])("owners, groups and permissions are those of a disk (%s)", async (...more) => {
    await place.sh("mkdir -m 755 plain");
    const expected = plain(await asOnDisk(place.path("plain")), place.path("plain"));
    const owner = `${STRANGER}:${STRANGER}`;
    // That the control says what is meant.
    expect(expected).toMatchObject({
      made: ["hi", "in", `f ${owner} 600 2`, `d ${owner} 700 2`, `l ${owner} 777 1`, `p ${owner} 600 1`, "640"],
      programs: ["ok", "ok"],
      shared: [`f ${STRANGER}:${GROUP} 644`, `d ${STRANGER}:${GROUP} 2755`, `d/f ${STRANGER}:${GROUP} 644`],
      groups: expect.arrayContaining(["g", "cat: groups: Permission denied"]) as string[],
    });
    expect(expected.chown?.slice(0, 4)).toEqual([
      ...[`given ${STRANGER}:${GROUP} 644`, `set ${STRANGER}:0 755`],
      ...[`${STRANGER}:${GROUP} 770`, `${owner} 2640`],
    ]);
    const mount = await place.mount(await place.gateway(), { args: ["--allow-other", ...more] });
    expect(plain(await asOnDisk(mount.dir), mount.dir)).toEqual(expected);
  });
});

describe("at the gateway and on other mounts", () => {
  let gateway: TestGateway;
  const mounted = (name: string, ...args: string[]) => place.mount(gateway, { name, args });
  const owners = async ({ sh }: TestMount, ...names: string[]) =>
    check(await sh(`stat -c %u:%g ${names.join(" ")}`))
      .stdout.split("\n")
      .slice(0, -1);

  async function api(path: string, ...args: string[]): Promise<Record<string, unknown>> {
    const token = ["-H", `Authorization: Bearer ${gateway.token}`];
    const { stdout } = check(await place.run("curl", ["-sf", ...token, `${gateway.baseUrl}/v1/${path}`, ...args]));
    return JSON.parse(stdout) as Record<string, unknown>;
  }
  async function patch(path: string, attributes: object): Promise<void> {
    const { id } = await api(`files${path}`);
    const json = ["-H", "Content-Type: application/json", "-d", JSON.stringify({ attributes })];
    await api(`nodes/${id}`, "-X", "PATCH", ...json);
  }

  it("they are there with their names, and a mount shows whom the name means on its machine", async () => {
    gateway = await place.gateway();
    const one = await mounted("one", "--allow-other");
    check(await one.sh("mkdir -m 1777 pub && touch a b c d e"));
    await as(DAEMON, [], `cd '${one.dir}/pub' && echo theirs > f && chmod 600 f`);
    check(await one.sh(`chown ${STRANGER} pub/../a && chown :${DAEMON} b`));
    await one.umount("--drain=60");
    const { attributes } = await api("files/pub/f");
    expect(attributes).toMatchObject({ uid: DAEMON, uname: "daemon", gid: DAEMON, gname: "daemon", mode: 0o600 });
    const { attributes: a } = await api("files/a");
    expect(a).toMatchObject({ uid: STRANGER, gid: 0, gname: "root" });
    expect(a).not.toHaveProperty("uname");

    const real = await mounted("real", "--owners", "real", "--allow-other");
    const mine = await mounted("mine");
    expect([await real.status(), await mine.status()]).toMatchObject([{ owners: "real" }, { owners: "mine" }]);
    expect(await owners(real, "pub/f", "a", "b")).toEqual([`${DAEMON}:${DAEMON}`, `${STRANGER}:0`, `0:${DAEMON}`]);
    expect(await owners(mine, "pub/f", "a", "b")).toEqual(["0:0", "0:0", "0:0"]);
    expect(await as(DAEMON, [], `cat '${real.dir}/pub/f'`)).toEqual(["theirs"]);
    expect((await as(STRANGER, [], `cat '${real.dir}/pub/f'`))[0]).toContain("Permission denied");

    // What others change is shown at once, by name before number.
    await patch("/c", { uid: 4711, uname: "daemon" });
    await patch("/d", { uid: DAEMON, uname: "nobody here has that name" });
    await patch("/e", { uid: null, uname: null, gid: STRANGER, gname: "nor a group" });
    const shown = [`${DAEMON}:0`, "65534:0", `0:${STRANGER}`];
    const wait = `for i in $(seq 100); do [ "$(stat -c %u:%g c d e | xargs)" = "${shown.join(" ")}" ] && exit; sleep 0.1; done; exit 1`;
    check(await real.sh(wait));
    // An owner that is given on a mount that shows its own goes to the gateway; what is made there has none.
    check(await mine.sh(`chown ${STRANGER}:${DAEMON} c && touch made`));
    await mine.umount("--drain=60");
    const { attributes: c } = await api("files/c");
    expect(c).toMatchObject({ uid: STRANGER, gid: DAEMON, gname: "daemon" });
    expect(c).not.toHaveProperty("uname");
    expect((await api("files/made")).attributes).not.toHaveProperty("uid");
  });

  it("a state dir keeps what it was used with, until something else is asked for", async () => {
    gateway = await place.gateway();
    const before = await mounted("mount", "--owners", "mine", "--allow-other");
    check(await before.sh(`touch f && chown ${STRANGER} f`));
    const human = check(await place.wsfs(["status", before.dir])).stdout;
    expect(human).toMatch(/^owners {5}mine: /m);
    const { code, stderr } = await place.wsfs(["reload", before.dir, "--owners", "real"]);
    expect([code, stderr]).toMatchObject([2, expect.stringContaining("--owners cannot change while")]);
    await before.umount();
    const again = await mounted("mount", "--allow-other");
    expect([await owners(again, "f"), (await again.status()).owners]).toEqual([["0:0"], "mine"]);
    await again.umount();
    const asked = await mounted("mount", "--owners", "real");
    expect(await owners(asked, "f")).toEqual([`${STRANGER}:0`]);
    // For root alone too.
    check(await asked.sh(`chown ${DAEMON} f && touch made`));
    await asked.umount();
    const kept = await mounted("mount", "--allow-other");
    expect(await owners(kept, "f", "made")).toEqual([`${DAEMON}:0`, "0:0"]);
    expect(check(await place.wsfs(["status", kept.dir])).stdout).toMatch(/^owners {5}real: /m);
  });

  it("a program with a set-user-id or set-group-id bit has access where other users have, and nowhere else", async () => {
    gateway = await place.gateway();
    check(
      await place.sh(`cp /bin/cat user && cp /bin/cat group && chown ${STRANGER} user && chgrp ${GROUP} group
        chmod 4755 user && chmod 2755 group`),
    );
    const reads = async ({ dir, sh }: TestMount) => {
      check(await sh("echo read > f"));
      const { stdout, stderr } = await place.sh(`./user '${dir}/f'; ./group '${dir}/f'`);
      return `${stdout}${stderr}`.replaceAll(dir, "");
    };
    const alone = await mounted("alone");
    expect(await reads(alone)).toBe("./user: /f: Permission denied\n./group: /f: Permission denied\n");
    await alone.umount("--drain=60");
    expect(await reads(await mounted("shared", "--allow-other"))).toBe("read\nread\n");
  });

  it("they outlive a daemon that is killed, and so does who is making something", async () => {
    gateway = await place.gateway();
    const mount = await mounted("mount", "--allow-other");
    check(await mount.sh("mkdir -m 1777 pub"));
    const making = as(
      STRANGER,
      [],
      `cd '${mount.dir}/pub'; for i in $(seq 300); do (umask 077; echo $i > f$i) && cat f$i > /dev/null || exit; done; stat -c %u:%g f* | sort -u`,
    );
    process.kill(mount.pid, "SIGKILL");
    expect(await making).toEqual([`${STRANGER}:${STRANGER}`]);
  });
});
