/** A login in the keyring of a desktop's session: gnome-keyring on a bus of its own, without a desktop. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { until } from "../support/child.ts";
import { check, createPlace, type Place } from "../support/wsfs.ts";
import { makeAccount, signIn } from "./support/sign-in.ts";

const hasKeyring = ["dbus-daemon", "gnome-keyring-daemon"].every(
  (program) => spawnSync("which", [program]).status === 0,
);

let place: Place;
beforeEach(() => {
  place = createPlace();
});
afterEach(() => place.cleanUp());

/** The bus of a session, with its keyring unlocked, for all that the place starts from now on. Answers what ends it. */
async function startKeyring(): Promise<() => Promise<void>> {
  const bus = place.spawn("dbus-daemon", ["--session", "--nofork", "--nosyslog", "--print-address"]);
  for await (const line of createInterface(bus.stdout as Readable)) {
    place.env.DBUS_SESSION_BUS_ADDRESS = line;
    break;
  }
  const runtime = place.path("session");
  mkdirSync(runtime, { mode: 0o700 });
  place.env.XDG_RUNTIME_DIR = runtime;
  const keyring = "exec gnome-keyring-daemon --foreground --unlock --components=secrets <<< password";
  place.spawn("bash", ["-c", keyring]);
  // Else the bus would start another one, which nobody has unlocked.
  const ask = "dbus-send --session --print-reply --dest=org.freedesktop.DBus / org.freedesktop.DBus.NameHasOwner";
  const isThere = async () => (await place.sh(`${ask} string:org.freedesktop.secrets`)).stdout.includes("true");
  await until("the keyring is there", isThere, 30_000);
  const ended = new Promise<void>((resolve) => void bus.once("exit", () => resolve()));
  return async () => {
    bus.kill("SIGTERM");
    await ended;
  };
}

describe.skipIf(!hasKeyring)("with dbus-daemon and gnome-keyring-daemon installed", () => {
  test("commands and mounts in the background use it; no file has the login", { timeout: 180_000 }, async () => {
    const endSession = await startKeyring();
    const gateway = await place.gateway();
    const password = await makeAccount(place, gateway);
    await signIn(place, gateway.baseUrl, password, ["--store", "keyring"]);
    const file = place.path("state/wsfs/logins/team.json");
    expect(JSON.parse(readFileSync(file, "utf8"))).toEqual({ version: 1, store: "keyring" });
    expect(check(await place.wsfs(["whoami"])).stdout).toContain("kept in      the system keyring");
    const dir = place.path("work");
    check(await place.sh(`mkdir '${dir}'`));
    check(await place.wsfs(["mount", dir, "--workspace", gateway.workspace, "--background"]));
    check(await place.sh(`echo kept > '${dir}/f'`));
    check(await place.wsfs(["drain", dir, "--timeout", "60"]));
    expect(check(await place.wsfs(["token"])).stdout).toMatch(/^ey/);

    await endSession();
    const refused = await place.wsfs(["token"], { timeoutMs: 60_000 });
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused.stderr).toMatch(/^wsfs: the system keyring does not answer: .*\n$/);
    expect(check(await place.sh(`cat '${dir}/f'`)).stdout).toBe("kept\n");
    expect(check(await place.wsfs(["logout", "--force"])).stdout).toBe("Signed out of team\n");
    expect(existsSync(file)).toBe(false);
  });
});

test("without a session: one line before anybody approves anything, and nothing is saved", async () => {
  check(await place.wsfs(["env", "add", "team", "--base-url", "http://127.0.0.1:9"]));
  const refused = await place.wsfs(["login", "--store", "keyring"], { env: { DBUS_SESSION_BUS_ADDRESS: "" } });
  expect(refused.code).toBe(1);
  expect(refused.stderr).toMatch(/^wsfs: the system keyring does not answer: .*\n$/);
  expect(existsSync(place.path("state/wsfs/logins/team.json"))).toBe(false);
}, 60_000);
