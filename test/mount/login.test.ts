/**
 * Mounts by a login, as a person has them: signed in, out and in again, and with a role that is given, lowered and taken.
 * The tests run at the same time, because they mostly wait: for the next look at a login or a role.
 */
import { expect, type TestContext, test } from "vitest";
import { z } from "zod";
import { systemKeyring } from "../../src/client/keyring.ts";
import { readLogin } from "../../src/client/login/login-file.ts";
import { saveLogin } from "../../src/client/login/saved-login.ts";
import { until } from "../support/child.ts";
import { lossyWay } from "../support/lossy-way.ts";
import { signIn } from "../support/sign-in.ts";
import { check, type Place, placeFor, type TestGateway } from "../support/wsfs.ts";

interface Team {
  readonly place: Place;
  readonly gateway: TestGateway;
  /** `wsfs login`, approved by ada in a browser. */
  signIn(): Promise<void>;
  setRole(role: "viewer" | "editor" | undefined): Promise<void>;
  /** With the login, into a fresh folder if it is not there. */
  mount(name: string): Promise<TeamMount>;
  /** Of the journal, newest first. */
  journal(): Promise<readonly unknown[]>;
}

interface TeamMount {
  readonly dir: string;
  /** What the mount command said besides. */
  readonly said: string;
  status(): Promise<z.infer<typeof statusOfMount>>;
}

const statusOfMount = z.object({
  pid: z.number(),
  dirty: z.number(),
  readOnly: z.string().optional(),
  paused: z.string().optional(),
});
/** Many more, without a mount: test/client/login. */
const PROGRAMS = 10;
const page = z.object({ items: z.array(z.unknown()) });

/** A gateway with ada, and the environment "team" for it. */
async function createTeam(context: TestContext, args: readonly string[] = []): Promise<Team> {
  const place = placeFor(context);
  const gateway = await place.gateway({ args });
  const { baseUrl, data, token, workspace } = gateway;
  const user = ["ada", "--data", data];
  const password = check(await place.wsfs(["gateway", "user", "add", ...user, "--generate"])).stdout.trim();
  const role = (does: readonly string[]) => place.wsfs(["gateway", "grant", ...does, "--workspace", workspace]);
  const team: Team = {
    place,
    gateway,
    async signIn() {
      await signIn(place, { env: "team", baseUrl, password });
    },
    async setRole(to) {
      check(await role(to === undefined ? ["remove", ...user] : ["set", ...user, "--role", to]));
    },
    async mount(name) {
      const dir = place.path(name);
      check(await place.sh(`mkdir -p '${dir}'`));
      const more = ["--state-dir", place.path(`${name}.state`), "--background"];
      const { stderr } = check(await place.wsfs(["mount", dir, "--workspace", workspace, ...more]));
      const status = async () => statusOfMount.parse(await place.status(dir));
      return { dir, said: stderr, status };
    },
    async journal() {
      const headers = { authorization: `Bearer ${token}` };
      return page.parse(await (await fetch(`${baseUrl}/v1/journal?orderBy=-position`, { headers })).json()).items;
    },
  };
  await team.setRole("editor");
  check(await place.wsfs(["env", "add", "team", "--base-url", baseUrl]));
  return team;
}

const isSent = ({ status }: TeamMount) => until("all is sent", async () => (await status()).dirty === 0, 60_000);

test.concurrent("a mount by a login: signed out of, what is written waits; signed in again, it is sent", async (context) => {
  const { place, gateway, signIn, mount, journal } = await createTeam(context);
  const dir = place.path("desk");
  check(await place.sh(`mkdir '${dir}'`));
  const unsigned = await place.wsfs(["mount", dir, "--workspace", gateway.workspace, "--background"]);
  expect(unsigned).toMatchObject({ code: 1, stderr: expect.stringContaining('run "wsfs login --env team"') });

  expect(await place.wsfs(["call", "GET", "/v1/workspaces"])).toMatchObject({
    code: 1,
    stderr: 'wsfs: GET /v1/workspaces: not signed in: run "wsfs login --env team"\n',
  });

  await signIn();
  const moved = await place.wsfs(["env", "add", "team", "--base-url", "http://127.0.0.1:9"]);
  expect(moved).toMatchObject({ code: 1, stderr: expect.stringContaining('"wsfs logout --env team" first') });
  const desk = await mount("desk");
  check(await place.sh(`echo first > '${dir}/f'`));
  check(await place.wsfs(["drain", dir, "--timeout", "60"]));

  check(await place.wsfs(["logout", "--env", "team"]));
  expect(check(await place.sh(`echo second > '${dir}/f'; cat '${dir}/f'`)).stdout).toBe("second\n");
  await until(
    "it is known",
    async () => (await desk.status()).paused?.includes('run "wsfs login --env team"') === true,
  );
  expect((await desk.status()).dirty).toBe(1);
  const { code, stderr } = await place.wsfs(["umount", dir, "--drain=5"]);
  expect([code, stderr]).toEqual([1, expect.stringMatching(/^wsfs: 1 change[^\n]* to upload; login needed: [^\n]*\n/)]);
  expect(stderr).toMatch(/wsfs: not drained: \/f: [^\n]*run "wsfs login --env team"\nwsfs: [^\n]* is still mounted\n$/);

  await signIn();
  await isSent(desk);
  const [second, first] = await journal();
  const by = { account: "ada", mount: expect.stringMatching(/.:\/.*\/desk$/) };
  expect([first, second]).toMatchObject([
    { kind: "created", name: "f", by },
    { kind: "updated", name: "f", by },
  ]);
}, 180_000);

test.concurrent("a login that is ended at the gateway: reads go on, changes wait, and a new one sends them", async (context) => {
  const { place, gateway, signIn, mount } = await createTeam(context);
  await signIn();
  const work = await mount("work");
  const { dir } = work;
  check(await place.sh(`echo first > '${dir}/f'`));
  check(await place.wsfs(["drain", dir, "--timeout", "60"]));
  check(await place.wsfs(["gateway", "token", "--data", gateway.data, "--revoke-all"]));

  check(await place.sh(`echo second > '${dir}/g'`));
  await until(
    "it is known",
    async () => (await work.status()).paused?.includes('run "wsfs login --env team"') === true,
  );
  expect(check(await place.sh(`cat '${dir}/f' '${dir}/g'`)).stdout).toBe("first\nsecond\n");
  expect(check(await place.wsfs(["status", dir])).stdout).toMatch(
    /paused +login needed: the login has ended: run "wsfs login --env team"\n/,
  );
  expect(check(await place.wsfs(["queue", dir])).stdout).toContain('run "wsfs login --env team"');
  expect(await place.wsfs(["token", "--env", "team"])).toMatchObject({
    code: 1,
    stdout: "",
    stderr: expect.stringContaining('run "wsfs login --env team"'),
  });
  await signIn();
  await isSent(work);
}, 180_000);

test.concurrent("two mounts and ten programs refresh at once, and an answer is lost: all have tokens, nothing is lost", async (context) => {
  // Each request of a mount comes to refresh.
  const { place, gateway, signIn, mount } = await createTeam(context, ["--token-life", "2"]);
  await signIn();
  const path = place.path("state/wsfs/logins/team.json");
  const login = await readLogin(path, systemKeyring());
  if (login === undefined) throw new Error("nobody is signed in");
  let refreshes = 0;
  let isLosing = false;
  const isLost = (url: string) => {
    if (url !== "/oauth/token") return false;
    refreshes += 1;
    const isLostNow = isLosing;
    isLosing = false;
    return isLostNow;
  };
  const way = await lossyWay(gateway.baseUrl, isLost, context.onTestFinished);
  await saveLogin(path, { ...login, server: { ...login.server, token_endpoint: `${way}/oauth/token` } });
  const mounts = [await mount("one"), await mount("two")];
  isLosing = true;
  const before = refreshes;
  const writing = mounts.map(({ dir }, index) =>
    place.sh(`for i in $(seq 20); do echo $i > '${dir}/${index}-'$i; sleep 0.2; done`),
  );
  const tokens = await Promise.all(
    Array.from({ length: PROGRAMS }, () => place.wsfs(["token", "--env", "team"], { timeoutMs: 120_000 })),
  );
  expect(new Set(tokens.map((one) => check(one).stdout)).size).toBe(PROGRAMS);
  for (const one of await Promise.all(writing)) check(one);
  expect([isLosing, refreshes > before + PROGRAMS]).toEqual([false, true]);
  for (const one of mounts) await isSent(one);
  const names = [0, 1].flatMap((index) => Array.from({ length: 20 }, (_, i) => `${index}-${i + 1}`)).sort();
  for (const { dir } of mounts) {
    await until(`${dir} shows all`, async () => (await place.sh(`ls '${dir}' | wc -l`)).stdout.trim() === "40");
    expect(
      check(await place.sh(`LC_ALL=C ls '${dir}'`))
        .stdout.trim()
        .split("\n")
        .sort(),
    ).toEqual(names);
  }
  check(await place.wsfs(["whoami", "--env", "team"]));
}, 300_000);

test.concurrent("a role that is lowered, given, and taken while mounted: programs hear it, what waits is kept and sent", async (context) => {
  const { place, signIn, mount, setRole } = await createTeam(context);
  await signIn();
  const work = await mount("work");
  const { dir } = work;
  check(await place.sh(`echo first > '${dir}/f'`));
  check(await place.wsfs(["drain", dir, "--timeout", "60"]));
  const AS_VIEWER = 'your role in workspace "workspace" is viewer, changing files takes editor: ask an owner of it';

  await setRole("viewer");
  check(await place.sh(`echo second > '${dir}/f'`));
  await until("it is known", async () => (await work.status()).readOnly?.startsWith(AS_VIEWER) === true);
  expect(await place.sh(`echo x > '${dir}/g'`)).toMatchObject({ code: 1, stderr: expect.stringMatching(/Read-only/) });
  expect(check(await place.sh(`cat '${dir}/f'`)).stdout).toBe("second\n");
  expect(check(await place.wsfs(["status", dir])).stdout).toContain(`read-only  ${AS_VIEWER}`);
  expect(check(await place.wsfs(["queue", dir])).stdout).toContain(AS_VIEWER);
  await setRole("editor");
  await isSent(work);
  check(await place.sh(`echo third > '${dir}/f'`));
  check(await place.wsfs(["drain", dir, "--timeout", "60"]));

  await setRole(undefined);
  check(await place.sh(`echo fourth > '${dir}/f'`));
  await until("it is known", async () => (await work.status()).readOnly?.startsWith("you have no role") === true);
  expect(check(await place.sh(`cat '${dir}/f'`)).stdout).toBe("fourth\n");
  await setRole("editor");
  check(await place.wsfs(["queue", "retry", dir]));
  await isSent(work);
  expect(check(await place.sh(`cat '${dir}/f'`)).stdout).toBe("fourth\n");
}, 240_000);

test.concurrent("a viewer's mount says so and takes no changes; a stranger is told that there is no such workspace", async (context) => {
  const { place, gateway, signIn, mount, setRole } = await createTeam(context);
  await setRole("viewer");
  await signIn();
  const { dir, said, status } = await mount("work");
  expect(said).toContain('mounted read-only: your role in workspace "workspace" is viewer');
  expect(await place.sh(`mkdir '${dir}/d'`)).toMatchObject({ code: 1, stderr: expect.stringMatching(/Read-only/) });
  // Another daemon asks anew.
  const { pid } = await status();
  process.kill(pid, "SIGKILL");
  await until("another daemon knows it too", async () => {
    const now = await status();
    return now.pid !== pid && now.readOnly?.startsWith("your role") === true;
  });
  await setRole("editor");
  await until("it takes changes", async () => (await place.sh(`mkdir '${dir}/d'`)).code === 0);

  await setRole(undefined);
  check(await place.sh("mkdir theirs"));
  for (const more of [[], ["--state-dir", "theirs.state"]]) {
    const theirs = ["mount", "theirs", "--workspace", gateway.workspace, "--background", ...more];
    expect(await place.wsfs(theirs)).toMatchObject({
      code: 1,
      stderr: 'wsfs: no workspace "workspace" is visible to this token; roles in it are given by its owners\n',
    });
  }
}, 120_000);

test.concurrent("what a mount needs is said: neither a gateway nor an environment, and both", async (context) => {
  const place = placeFor(context);
  await place.sh("mkdir work; echo t > t; chmod 600 t");
  const refused = async (...args: readonly string[]) => (await place.wsfs(["mount", "work", ...args])).stderr;
  expect(await refused()).toMatch(/mount needs --base-url.*--workspace.*--token-file.* or a gateway to sign in to/);
  check(await place.wsfs(["env", "add", "team", "--base-url", "http://127.0.0.1:9"]));
  expect(await refused()).toContain("mount needs --workspace");
  expect(await refused("--workspace", "main")).toContain('not signed in to team: run "wsfs login --env team"');
  expect(await refused("--env", "team", "--token-file", "t")).toContain(
    "--env (or WSFS_ENV) and --token-file exclude each other",
  );
});
