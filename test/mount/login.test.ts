/** A person signs in, mounts without a token file, signs out and in again: nothing that was written is lost. */
import { afterEach, expect, test } from "vitest";
import { until } from "../support/child.ts";
import { signIn } from "../support/sign-in.ts";
import { check, createPlace, type Place } from "../support/wsfs.ts";

let place: Place;
afterEach(() => place.cleanUp());

test("a mount by a login: signed out of, what is written waits; signed in again, it is sent", async () => {
  place = createPlace();
  const { baseUrl, data, token, workspace } = await place.gateway();
  const user = ["ada", "--data", data];
  const password = check(await place.wsfs(["gateway", "user", "add", ...user, "--generate"])).stdout.trim();
  check(await place.wsfs(["gateway", "grant", "set", ...user, "--workspace", workspace, "--role", "editor"]));
  check(await place.wsfs(["env", "add", "team", "--base-url", baseUrl]));
  const dir = place.path("work");
  await place.sh(`mkdir '${dir}'`);
  const mount = () => place.wsfs(["mount", dir, "--workspace", workspace, "--background"]);
  expect(await mount()).toMatchObject({ code: 1, stderr: expect.stringContaining('run "wsfs login --env team"') });

  await signIn(place, { env: "team", baseUrl, password });
  const moved = await place.wsfs(["env", "add", "team", "--base-url", "http://127.0.0.1:9"]);
  expect(moved).toMatchObject({ code: 1, stderr: expect.stringContaining('"wsfs logout --env team" first') });
  check(await mount());
  check(await place.sh(`echo first > '${dir}/f'`));
  check(await place.wsfs(["drain", dir, "--timeout", "60"]));

  check(await place.wsfs(["logout", "--env", "team"]));
  check(await place.sh(`echo second > '${dir}/f'; cat '${dir}/f'`));
  const dirty = async () => JSON.parse((await place.wsfs(["status", dir, "--json"])).stdout) as { dirty: number };
  expect((await dirty()).dirty).toBe(1);

  await signIn(place, { env: "team", baseUrl, password });
  await until("it is sent without a word", async () => (await dirty()).dirty === 0, 60_000);
  const headers = { authorization: `Bearer ${token}` };
  const versions = async (): Promise<unknown> => {
    const { id } = (await (await fetch(`${baseUrl}/v1/files/f`, { headers })).json()) as { id: string };
    return (await fetch(`${baseUrl}/v1/nodes/${id}/versions`, { headers })).json();
  };
  const by = { account: "ada" };
  expect(await versions()).toMatchObject({
    items: [
      { size: 6, by },
      { size: 7, by },
    ],
  });
}, 180_000);

test("what a mount needs is said: neither a gateway nor an environment, and both", async () => {
  place = createPlace();
  await place.sh("mkdir work; echo t > t; chmod 600 t");
  const refused = async (...args: readonly string[]) => (await place.wsfs(["mount", "work", ...args])).stderr;
  expect(await refused()).toMatch(/mount needs --base-url.*--workspace.*--token-file.* or a gateway to sign in to/);
  check(await place.wsfs(["env", "add", "team", "--base-url", "http://127.0.0.1:9"]));
  expect(await refused()).toContain("mount needs --workspace");
  expect(await refused("--workspace", "main")).toContain('nobody is signed in to team: run "wsfs login --env team"');
  expect(await refused("--env", "team", "--token-file", "t")).toContain(
    "--env (or WSFS_ENV) and --token-file exclude each other",
  );
});
