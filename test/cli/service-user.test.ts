/** Keys and executions of an ordinary user, whose gateway is one's own: what is ended is over at once, also where it is in use. */
import { once } from "node:events";
import { chmodSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { finished, until } from "../support/child.ts";
import { becomeOrdinaryUser, type OrdinaryUser, whyNoOrdinaryUser } from "../support/ordinary-user.ts";
import { signIn } from "../support/sign-in.ts";
import { check, createPlace, type Place, type TestGateway } from "../support/wsfs.ts";

const W = ["--workspace", "workspace"];
/** Tries its key until it is refused. */
const POLL = `
read -r header
echo begun
until [ "$(curl -sS -o /dev/null -w '%{http_code}' -H "$(echo "$header" | tr -d '"')" "$WSFS_BASE_URL/v1/nodes")" = 401 ]; do :; done
echo refused`;
/** Processes that outlive the shell, in its session and in one of their own, one of them deaf to SIGTERM. */
const STAY = `
sleep 1000 &
setsid sh -c 'sleep 1000 & wait' &
setsid sh -c 'trap "" TERM; while :; do sleep 1; done' > /dev/null 2>&1 &
echo begun
wait`;

let user: OrdinaryUser;
let place: Place;
let gateway: TestGateway;

/** Of a command that must succeed. */
const output = async (...args: string[]) => check(await place.wsfs(args)).stdout.trim();

const whyNot = whyNoOrdinaryUser();
describe.skipIf(whyNot !== undefined)(`an ordinary user${whyNot === undefined ? "" : ` (${whyNot})`}`, () => {
  beforeAll(async () => {
    user = await becomeOrdinaryUser("");
    place = createPlace(undefined, user);
    chmodSync(place.folder, 0o755);
    gateway = await place.gateway();
    const own = ["--data", gateway.data];
    const password = await output("gateway", "user", "add", "ada", ...own, "--generate");
    await output("gateway", "grant", "set", "ada", ...own, ...W, "--role", "owner");
    await output("env", "add", "team", "--base-url", gateway.baseUrl);
    await signIn(place, { env: "team", baseUrl: gateway.baseUrl, password });
    for (const [name, script] of [
      ["poll", POLL],
      ["stay", STAY],
    ] as const) {
      await output("gateway", "engine", "add", name, ...own, "--", "bash", "-c", script);
      await output("installations", "create", name, ...W);
    }
  }, 60_000);
  afterAll(async () => {
    // With it ends what it runs.
    await gateway.stop();
    await place.cleanUp();
    await user.end();
  });

  test("a key that is revoked ends at once: in streams that are open, in a program that runs, for the next call", async () => {
    const scopes = ["node.node.read-all", "execution.execution.read"].flatMap((scope) => ["--scope", scope]);
    const key = await output("keys", "create", "backup", ...W, ...scopes);
    const header = `Authorization: Bearer ${key}`;
    writeFileSync(place.path("curlrc"), `header = "${header}"\n`, { mode: 0o600 });
    user.own(place.path("curlrc"));
    const curl = (...args: string[]) => ["-sS", "-K", place.path("curlrc"), ...args];
    const statusOf = async (path: string) =>
      check(await place.run("curl", curl("-o", "/dev/null", "-w", "%{http_code}", gateway.baseUrl + path))).stdout;
    expect(await statusOf("/v1/nodes")).toBe("200");

    const staying = await output("executions", "run", "stay", ...W);
    const polling = await output("executions", "run", "poll", ...W, "--input", JSON.stringify(header));
    await until("the program has begun", async () => (await output("executions", "logs", polling)) === "begun");
    const paths = ["/v1/journal/stream", `/v1/executions/${staying}/logs/stream`];
    const streams = paths.map((path) => place.spawn("curl", curl("-N", gateway.baseUrl + path)));
    const ends = streams.map(finished);
    for (const stream of streams)
      if (stream.stdout?.readableDidRead !== true) await once(stream.stdout ?? stream, "data");

    const [shown] = (await output("keys", "list", ...W, "--json")).split("\n");
    await output("keys", "revoke", (JSON.parse(shown ?? "") as { id: string }).id);
    expect(await statusOf("/v1/nodes")).toBe("401");
    expect(await statusOf(paths[1] ?? "")).toBe("401");
    expect((await Promise.all(ends)).map(({ code }) => code)).toEqual([0, 0]);
    expect(check(await place.wsfs(["executions", "logs", polling, "--follow"])).stdout).toBe("begun\nrefused\n");
    // What an execution was started with is another matter.
    expect(JSON.parse(await output("executions", "show", staying, "--json"))).toMatchObject({ state: "running" });
    await output("executions", "cancel", staying);
  }, 60_000);

  test("an execution that is cancelled leaves no process, also none that hides or is deaf to SIGTERM", async () => {
    const id = await output("executions", "run", "stay", ...W);
    // The shell, two sleeps, and two sessions of their own, one with a sleep that comes and goes.
    await until("all its processes are there", () => processesOf(id).length >= 5);
    expect(await output("executions", "cancel", id)).toBe("The execution is cancelled.");
    expect(processesOf(id)).toEqual([]);
    expect(JSON.parse(await output("executions", "show", id, "--json"))).toMatchObject({
      ...{ state: "cancelled", exitCode: null, detail: "ada cancelled it." },
    });
  }, 60_000);
});

/** Names of those whose environment says so. */
function processesOf(execution: string): string[] {
  return readdirSync("/proc").flatMap((pid) => {
    try {
      const environment = readFileSync(`/proc/${pid}/environ`, "utf8").split("\0");
      if (!environment.includes(`WSFS_EXECUTION=${execution}`)) return [];
      return [readFileSync(`/proc/${pid}/comm`, "utf8").trim()];
    } catch {
      return [];
    }
  });
}
