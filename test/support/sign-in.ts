/** `wsfs login` as a process, approved in a browser. */
import { createInterface } from "node:readline";
import { z } from "zod";
import { Browser } from "../gateway/sign-in/support.ts";
import { finished } from "./child.ts";
import { check, type Place } from "./wsfs.ts";

const told = z.object({ code: z.object({ userCode: z.string() }).optional() });

/** All that the process printed. `onWaiting`: it waits for the approval, and is this process. */
export async function signIn(
  place: Place,
  { env, baseUrl, password, args = [], onWaiting = () => {} }: SignInOptions,
): Promise<string> {
  const child = place.spawnWsfs(["login", "--env", env, "--json", ...args]);
  const ended = finished(child);
  if (child.stdout === null) throw new Error("nothing is read of it");
  for await (const line of createInterface(child.stdout)) {
    const { code } = told.parse(JSON.parse(line));
    if (code === undefined) continue;
    onWaiting(child.pid ?? 0);
    const browser = new Browser(baseUrl);
    await browser.signIn(code.userCode, password);
    await browser.submit("/sign-in/approval", { decision: "approve" });
  }
  const { stdout, stderr } = check(await ended);
  return stdout + stderr;
}

export interface SignInOptions {
  readonly env: string;
  readonly baseUrl: string;
  /** Ada's. */
  readonly password: string;
  readonly args?: readonly string[];
  readonly onWaiting?: (pid: number) => void;
}
