/** A person signs in to a gateway: an account of it, and `wsfs login` approved in a browser. */
import { createInterface } from "node:readline";
import { expect } from "vitest";
import { z } from "zod";
import { Browser } from "../../gateway/sign-in/support.ts";
import { check, type Place, type TestGateway } from "../../support/wsfs.ts";

/** Makes the account ada, and the environment team. Answers its password. */
export async function makeAccount(place: Place, { baseUrl, data, workspace }: TestGateway): Promise<string> {
  const user = ["ada", "--data", data];
  const password = check(await place.wsfs(["gateway", "user", "add", ...user, "--generate"])).stdout.trim();
  check(await place.wsfs(["gateway", "grant", "set", ...user, "--workspace", workspace, "--role", "editor"]));
  check(await place.wsfs(["env", "add", "team", "--base-url", baseUrl]));
  return password;
}

/** `wsfs login`, approved by ada in a browser. */
export async function signIn(
  place: Place,
  baseUrl: string,
  password: string,
  args: readonly string[] = [],
): Promise<void> {
  const child = place.spawnWsfs(["login", "--env", "team", "--json", ...args]);
  const ended = new Promise<number | null>((resolve) => void child.on("exit", resolve));
  if (child.stdout === null) throw new Error("nothing is read of it");
  for await (const line of createInterface(child.stdout)) {
    const { code } = z.object({ code: z.object({ userCode: z.string() }).optional() }).parse(JSON.parse(line));
    if (code === undefined) continue;
    const browser = new Browser(baseUrl);
    await browser.signIn(code.userCode, password);
    await browser.submit("/sign-in/approval", { decision: "approve" });
  }
  expect(await ended).toBe(0);
}
