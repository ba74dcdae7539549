/**
 * The commands of workspaces, engines, executions, keys and triggers as a person has them: processes, signed in to a gateway
 * that is one. The tests are one session: each goes on from those before it.
 */
import { writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { finished, type RunOptions, until } from "../support/child.ts";
import { signIn } from "../support/sign-in.ts";
import { check, createPlace, type Place, type TestGateway } from "../support/wsfs.ts";
import { TIME } from "./support/history.ts";

const ID = "[0-9a-f]{8}-[0-9a-f-]{27}";
const W = ["--workspace", "workspace"];

let place: Place;
let gateway: TestGateway;
/** What was said before anybody had signed in. */
let unsigned: Awaited<ReturnType<typeof wsfs>>;
let setRole: (role: string) => Promise<unknown>;

beforeAll(async () => {
  place = createPlace();
  gateway = await place.gateway();
  const own = ["--data", gateway.data];
  const password = check(await place.wsfs(["gateway", "user", "add", "ada", ...own, "--generate"])).stdout.trim();
  setRole = async (role) => check(await place.wsfs(["gateway", "grant", "set", "ada", ...own, ...W, "--role", role]));
  await setRole("owner");
  check(await place.wsfs(["env", "add", "team", "--base-url", gateway.baseUrl]));
  unsigned = await wsfs(["engines"]);
  await signIn(place, { env: "team", baseUrl: gateway.baseUrl, password });
  const engines: [string, string, ...string[]][] = [
    ["greet", 'read i; echo "hello $i"; echo warned >&2', "--description", "Greets"],
    ["fail", "exit 3"],
    ["short", "sleep 600", "--time-limit", "1"],
    ["stay", "echo begun; sleep 600"],
  ];
  for (const [name, script, ...more] of engines) {
    check(await place.wsfs(["gateway", "engine", "add", name, ...own, ...more, "--", "sh", "-c", script]));
  }
}, 60_000);
afterAll(() => place.cleanUp());

/** Its exit code, standard output and standard error. */
async function wsfs(args: readonly string[], options?: RunOptions) {
  const { code, stdout, stderr } = await place.wsfs(args, options);
  return [code, stdout, stderr] as const;
}

async function output(...args: string[]): Promise<string> {
  const { stdout, stderr } = check(await place.wsfs(args));
  expect(stderr).toBe("");
  return stdout;
}

const lines = (text: string): unknown[] =>
  text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
const withId = z.looseObject({ id: z.string() });
const refused = (message: string | RegExp, code = 1) =>
  [code, "", message instanceof RegExp ? expect.stringMatching(message) : `wsfs: ${message}\n`] as const;
/** A table of these rows: regular expressions. */
const rows = (...texts: string[]) => expect.stringMatching(new RegExp(`^${texts.map((row) => `${row}\n`).join("")}$`));

test("workspaces are made and listed", async () => {
  expect(await output("workspaces", "create", "papers")).toMatch(
    new RegExp(`^Workspace papers is made \\(${ID}\\)\\.\n$`),
  );
  expect(await output("workspaces")).toEqual(
    rows("NAME +USED +QUOTA +ID", `papers +0 B +${ID}`, `workspace +0 B +${ID}`),
  );
  expect(lines(await output("workspaces", "list", "--json"))).toMatchObject([
    { name: "papers", role: "owner" },
    { name: "workspace", role: "owner" },
  ]);
  expect(await wsfs(["workspaces", "create", "papers"])).toEqual(refused(/There is a workspace "papers" already\.\n$/));
});

test("engines are listed and shown, and installed where one says", async () => {
  expect(await output("engines")).toEqual(
    rows("NAME +LIMIT +DESCRIPTION", "fail +1 h 0 min", "greet +1 h 0 min +Greets", "short +1 s", "stay +1 h 0 min"),
  );
  expect(await output("engines", "show", "greet")).toMatch(/^Name +greet\n(.+\n)*Input +any JSON\n/);
  expect(lines(await output("engines", "show", "greet", "--json"))).toMatchObject([{ name: "greet" }]);
  expect(await wsfs(["engines", "show", "nope"])).toEqual(refused(/There is no engine "nope"\.\n$/));

  expect(await output("installations", "list", ...W)).toBe("No engine is installed in the workspace.\n");
  const which = "which workspace? --workspace names one; wsfs workspaces lists them";
  expect(await wsfs(["installations", "list"])).toEqual(refused(which, 2));
  expect(await wsfs(["executions", "run", "greet", ...W])).toEqual(refused(/engine greet is not installed/));
  expect(await output("installations", "create", "greet", ...W)).toMatch(/^greet is installed in workspace \(/);
  for (const name of ["fail", "short", "stay"]) await output("installations", "create", name, ...W);
  expect(await wsfs(["installations", "create", "greet", ...W])).toEqual(
    refused(/is installed in the workspace already/),
  );
  const [made] = lines(
    await output("installations", "create", "greet", "--workspace", "papers", "--path", "/t", "--json"),
  );
  const { id } = withId.parse(made);
  expect(await output("installations", "--workspace", "papers")).toEqual(
    rows("ENGINE +WORKSPACE +INSTALLED +BY +ID", `greet +papers +${TIME} +ada +${id}`),
  );
  expect(await output("installations", "remove", id)).toMatch(/^The engine is removed/);
  expect((await wsfs(["installations", "remove", id]))[0]).toBe(1);
  expect(lines(await output("installations", "list", ...W, "--json"))).toHaveLength(4);
});

describe("executions", () => {
  test("are run, once for a key, on what is given as JSON, in a file or by standard input", async () => {
    const once = ["executions", "run", "greet", ...W, "--input", '{"a":1}', "--idempotency-key", "k"];
    const id = await output(...once);
    expect(id).toMatch(new RegExp(`^${ID}\n$`));
    expect(await output(...once)).toBe(id);
    writeFileSync(place.path("input.json"), '{"a": "file"}');
    const run = (...more: string[]) => ["executions", "run", "greet", ...W, ...more];
    const told = (name: string) => [
      0,
      `hello ${name}\n`,
      expect.stringMatching(new RegExp(`^execution ${ID}\nwarned\n$`)),
    ];
    const file = `@${place.path("input.json")}`;
    expect(await wsfs(run("--follow", "--input", file))).toEqual(told('{"a":"file"}'));
    expect(await wsfs(run("--follow", "--input", "-"), { input: '["in"]' })).toEqual(told('["in"]'));
    const noJson = /^wsfs: --input: expected JSON, @FILE or - \([^\n]+\)\n$/;
    expect(await wsfs(run("--input", '{"a"'))).toEqual(refused(noJson, 2));
    expect(await wsfs(run("--input", "-"), { input: "" })).toEqual(refused(noJson, 2));
    expect(await wsfs(run("--input", "@none"))).toEqual(refused("--input: @none cannot be read (ENOENT)"));

    const said = [0, 'hello {"a":1}\n', "warned\n"];
    expect(await wsfs(["executions", "logs", id.trim(), "--follow"])).toEqual(said);
    expect(await wsfs(["executions", "logs", id.trim()])).toEqual(said);
    const shown = await output("executions", "show", id.trim());
    expect(shown).toMatch(
      /^Id +\S+\nEngine +greet\nWorkspace +workspace\nState +succeeded\nExit code +0\nInput +\{"a":1\}\n/,
    );
    expect(lines(await output("executions", "show", id.trim(), "--json"))).toMatchObject([{ state: "succeeded" }]);
    expect(lines(await output("executions", "logs", id.trim(), "--json"))).toMatchObject([
      { number: 1, stream: "out", text: 'hello {"a":1}' },
      { number: 2, stream: "err", text: "warned" },
    ]);
  }, 60_000);

  test("end with exit code 1, and why, when they were no success", async () => {
    const run = async (engine: string, ...more: string[]) => wsfs(["executions", "run", engine, ...W, ...more]);
    const said = (text: string) =>
      expect.stringMatching(new RegExp(`^execution ${ID}\nwsfs: the execution ${text}\n$`));
    expect(await run("fail", "--wait")).toEqual([1, "", said("failed: It ended with exit code 3\\.")]);
    const [code, stdout, stderr] = await run("short", "--wait", "--json");
    expect([code, stderr]).toEqual([1, said("was ended at its time limit: It ran longer than [^\n]+")]);
    expect(lines(stdout)).toMatchObject([{ state: "timed-out" }]);
    expect((await run("greet", "--wait"))[0]).toBe(0);
  }, 60_000);

  test("are listed, newest first, some or all, and cut only on a terminal", async () => {
    const head = "ID +ENGINE +STATE +STARTED +TOOK +BY +DETAIL";
    const list = ["executions", "list", ...W];
    const [code, stdout, stderr] = await wsfs([...list, "--limit", "2"]);
    expect([code, stderr]).toEqual([0, "4 more; --limit 0 shows all\n"]);
    const short = `${ID} +short +timed-out +${TIME} +[\\d.]+ s +ada +It ran longer than its time limit of 1 s\\.`;
    expect(stdout).toEqual(rows(head, `${ID} +greet +succeeded +${TIME} +[\\d.]+ s +ada`, short));
    const all = lines(await output(...list, "--limit", "0", "--json"));
    expect(all).toHaveLength(6);
    expect(lines(await output(...list, "--engine", "fail", "--json"))).toMatchObject([{ state: "failed" }]);
    expect(await output(...list, "--state", "running")).toBe("There is no such execution in the workspace.\n");
    expect(await output("executions", "--workspace", "papers")).toBe("Nothing has run in the workspace.\n");
    const command = `stty cols 100; '${process.execPath}' '${place.program}' ${list.join(" ")} --state timed-out`;
    const terminal = check(await place.run("script", ["-qec", command, "/dev/null"])).stdout;
    const [, row = ""] = terminal.split("\r\n");
    expect(row).toMatch(new RegExp(`^${ID} .*…$`));
  }, 60_000);

  test("are cancelled, which waits for their end; what has ended stays", async () => {
    const id = (await output("executions", "run", "stay", ...W)).trim();
    expect(await output("executions", "cancel", id)).toBe("The execution is cancelled.\n");
    const [over] = lines(await output("executions", "list", ...W, "--state", "succeeded", "--limit", "1", "--json"));
    expect(await output("executions", "cancel", withId.parse(over).id)).toBe("It had ended already: succeeded.\n");
    expect(lines(await output("executions", "cancel", id, "--json"))).toMatchObject([{ state: "cancelled" }]);
    expect(await wsfs(["executions", "logs", id, "--follow"])).toEqual([
      1,
      expect.stringMatching(/^(begun\n)?$/),
      "wsfs: the execution was cancelled: ada cancelled it.\n",
    ]);
    expect(await wsfs(["executions", "show", "nope"])).toEqual(refused(/There is no execution "nope"\.\n$/));
  }, 60_000);

  test("are followed over a restart of the gateway, which interrupts them", async () => {
    const id = (await output("executions", "run", "stay", ...W)).trim();
    const child = place.spawnWsfs(["executions", "logs", id, "--follow"]);
    let seen = "";
    child.stdout?.on("data", (text) => {
      seen += String(text);
    });
    const ended = finished(child);
    await until("its first line is shown", () => seen === "begun\n");
    await gateway.stop();
    gateway = await place.gateway({ args: ["--port", new URL(gateway.baseUrl).port] });
    const { code, stdout, stderr } = await ended;
    expect([code, stdout]).toEqual([1, "begun\n"]);
    expect(stderr).toMatch(
      /^(wsfs: the log: [^\n]+; going on\n)+(gateway: [^\n]+\n)*wsfs: the execution was interrupted: [^\n]+\n$/,
    );
  }, 60_000);
});

test("a key is all that is printed, works with curl, and is refused once it is revoked", async () => {
  const create = ["keys", "create", "backup", ...W, "--scope", "node.node.read-all"];
  const [code, stdout, stderr] = await wsfs([...create, "--expires", "30d"]);
  expect([code, stdout]).toEqual([0, expect.stringMatching(/^wsfs_key_[\w-]+\n$/)]);
  const until = new RegExp(
    `^Keep it now: it is not shown again\\. It expires ${TIME}; wsfs keys revoke (${ID}) ends it\\.\n$`,
  );
  const id = until.exec(stderr)?.[1] ?? "";
  expect(stderr).toMatch(until);

  writeFileSync(place.path("curlrc"), `header = "Authorization: Bearer ${stdout.trim()}"\n`, { mode: 0o600 });
  const curl = async (path: string) => {
    const args = [
      "-sS",
      "-K",
      place.path("curlrc"),
      "-o",
      "/dev/null",
      "-w",
      "%{http_code}",
      `${gateway.baseUrl}${path}`,
    ];
    return check(await place.run("curl", args)).stdout;
  };
  expect(await output("keys", ...W)).toEqual(
    rows(
      "NAME +OF +CREATED +EXPIRES +LAST USED +ID +SCOPES",
      `backup +ada +${TIME} +${TIME} +never +${id} +node\\.node\\.read-all`,
    ),
  );
  expect([await curl("/v1/nodes"), await curl("/v1/journal"), await curl("/v1/engines")]).toEqual([
    "200",
    "200",
    "403",
  ]);
  const [shown] = lines(await output("keys", "list", ...W, "--json"));
  expect(shown).toMatchObject({ id, lastUsedAt: expect.any(String) });
  expect(JSON.stringify(shown)).not.toContain(stdout.trim());
  expect(await output("keys", "revoke", id)).toBe("The key is revoked.\n");
  expect(await curl("/v1/nodes")).toBe("401");
  expect(await wsfs(["keys", "revoke", id])).toEqual(refused(/There is no API key of this id\.\n$/));
  expect(await output("keys", ...W)).toBe("The workspace has no API key.\n");

  const what = "keys create needs --scope: What the key may do: a scope, as wsfs login --help lists them";
  expect(await wsfs(["keys", "create", "x", ...W])).toEqual(refused(what, 2));
  const another = await wsfs(["keys", "create", "x", ...W, "--scope", "account.key.create"]);
  expect(another).toEqual(refused(/--scope: expected one of .*"account\.key\.create"\n$/, 2));
  const made = await place.wsfs([...create, "--json"]);
  expect(lines(made.stdout)).toMatchObject([{ key: expect.stringMatching(/^wsfs_key_/), expiresAt: null }]);
  expect(made.stderr).toContain("It does not expire");
}, 60_000);

describe("triggers", () => {
  const create = ["triggers", "create", "t", ...W, "--engine", "greet"];

  test.each<[string[], string]>([
    [[], "say when it starts the engine: --on-path, --on-kind or --on-activity, or --cron"],
    [
      ["--cron", "* * * * *", "--on-path", "/x"],
      "--cron goes with no --on-path, --on-kind or --on-activity: make two triggers",
    ],
    [
      ["--cron", "* * * * *", "--on-kind", "created"],
      "--cron goes with no --on-path, --on-kind or --on-activity: make two triggers",
    ],
    [["--on-path", "/x", "--time-zone", "UTC"], "--time-zone is for --cron"],
  ])("that make no sense are refused in a line: %j", async (more, why) => {
    expect(await wsfs([...create, ...more])).toEqual(refused(`triggers create: ${why}`, 2));
  });

  test("a kind that is mistyped is refused with those there are", async () => {
    const kinds = "created, updated, moved, changed, deleted, restored, execution\\.queued, [^\n]+";
    expect(await wsfs([...create, "--on-kind", "craeted"])).toEqual(
      refused(new RegExp(`^wsfs: --on-kind: expected one of ${kinds}, got "craeted"\n$`), 2),
    );
  });

  test("the gateway's reasons are a line, too", async () => {
    expect(await wsfs(create.slice(0, -2))).toEqual(refused(/^wsfs: triggers create needs --engine: [^\n]+\n$/, 2));
    expect(await wsfs([...create, "--cron", "x"])).toEqual(
      refused(/^wsfs: triggers create: [^\n]+on\.schedule\.cron: expected five fields[^\n]+\n$/),
    );
    expect(await wsfs([...create, "--on-path", "x"])).toEqual(
      refused(/^wsfs: triggers create: [^\n]+on\.journal\.path: expected [^\n]+\n$/),
    );
  });

  test("start engines for what is saved, and by the clock; are shown, switched and removed", async () => {
    const on = ["--on-kind", "created", "--on-activity", "seen", "--on-path", "/in/**"];
    const [made] = lines(
      await output("triggers", "create", "saves", ...W, "--engine", "greet", ...on, "--input", '"x"', "--json"),
    );
    const { id } = withId.parse(made);
    const cron = ["--cron", "30 2 * * *", "--time-zone", "Europe/Berlin"];
    expect(await output("triggers", "create", "nightly", ...W, "--engine", "greet", ...cron)).toMatch(
      /^Trigger nightly starts greet at "30 2 \* \* \*" Europe\/Berlin \(/,
    );
    expect(await output("triggers", ...W)).toEqual(
      rows(
        "NAME +ENGINE +STATE +NEXT +ID +WHEN",
        `nightly +greet +on +${TIME} +${ID} +at "30 2 \\* \\* \\*" Europe/Berlin`,
        `saves +greet +on +${id} +for created, seen of /in/\\*\\*`,
      ),
    );
    const save = ["call", "POST", "/v1/files/in/a.txt", "--query", "workspace=workspace"];
    check(await place.wsfs([...save, "--form", `file=@${place.path("input.json")}`]));
    const list = ["executions", "list", ...W, "--json", "--limit", "1"];
    const isDone = async () => {
      const { stdout } = check(await place.wsfs(list));
      const found = z.looseObject({ state: z.string(), cause: z.unknown() }).parse(JSON.parse(stdout));
      return found.cause !== null && found.state === "succeeded";
    };
    await until("it has run", isDone);
    const { stdout } = check(await place.wsfs(list));
    const execution = withId.parse(JSON.parse(stdout)).id;
    expect(await output("executions", "show", execution)).toMatch(
      new RegExp(`\nInput +"x"\nBy +trigger ${id}\nFor +created a\\.txt\n`),
    );
    expect(await output("triggers", "show", id)).toMatch(
      new RegExp(`\nWhen +for created, seen of /in/.*\n(.+\n)*Last +${execution}\n`),
    );
    expect(await output("triggers", "disable", id)).toBe("Trigger saves is off.\n");
    expect(lines(await output("triggers", "show", id, "--json"))).toMatchObject([{ isEnabled: false }]);
    expect(lines(await output("triggers", "enable", id, "--json"))).toMatchObject([{ isEnabled: true }]);
    expect(await output("triggers", "remove", id)).toBe("The trigger is removed.\n");
    expect(await wsfs(["triggers", "show", id])).toEqual(refused(/There is no trigger /));
    expect(lines(await output("triggers", "list", ...W, "--json"))).toMatchObject([{ name: "nightly" }]);
  }, 60_000);
});

test("a viewer sees, and is told which role it takes to do more", async () => {
  await setRole("viewer");
  const takes = (command: string, role: string) =>
    refused(`${command}: 403 Forbidden: This takes the role ${role} in the workspace; the account is viewer.`);
  expect(await wsfs(["executions", "run", "greet", ...W])).toEqual(takes("executions run", "editor"));
  expect(await wsfs(["installations", "create", "greet", ...W])).toEqual(takes("installations create", "owner"));
  expect(await wsfs(["keys", "create", "k", ...W, "--scope", "node.file.read"])).toEqual(takes("keys create", "owner"));
  expect(await wsfs(["triggers", "create", "t", ...W, "--engine", "greet", "--cron", "0 0 * * *"])).toEqual(
    takes("triggers create", "owner"),
  );
  expect((await wsfs(["executions", "list", ...W, "--limit", "1"]))[0]).toBe(0);
  expect(await output("triggers", ...W)).toContain("nightly");
  expect(await output("installations", ...W)).toContain("greet");
}, 60_000);

test("who is not signed in, or whose gateway is gone, is told so in a line", async () => {
  expect(unsigned).toEqual(refused('not signed in: run "wsfs login --env team"'));
  await gateway.stop();
  expect(await wsfs(["engines"])).toEqual(refused(/^wsfs: [^\n]*the gateway is not reached[^\n]*\n$/));
}, 60_000);
