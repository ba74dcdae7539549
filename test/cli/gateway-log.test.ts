import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { expect, onTestFinished, test, vi } from "vitest";
import { createGatewayLog, type LogOutput } from "../../src/cli/gateway-log.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { createPlace, MAIN } from "../support/wsfs.ts";

function fakeOutput(isTTY: boolean) {
  const state = { text: "", writableLength: 0, fail: () => {} };
  const output: LogOutput = {
    isTTY,
    get writableLength() {
      return state.writableLength;
    },
    write(text) {
      state.text += text;
    },
    on(_event, listener) {
      state.fail = listener;
    },
  };
  return { state, output };
}

const request = { method: "GET", path: "/v1/nodes", query: "path=/", status: 200, ms: 1.25, bytes: 2048 };

test("people on a terminal get columns, in colors unless NO_COLOR says not", () => {
  const { state, output } = fakeOutput(true);
  const environment = { NO_COLOR: "1" };
  const log = createGatewayLog({ level: "info", json: false, output, environment });
  log.info(request, "request");
  log.info({ ...request, status: 0, bytes: 0, broken: true }, "request");
  log.info({ collected: 3 }, "removed blobs");
  log.debug({}, "not told");
  expect(state.text.replaceAll(/^\d\d:\d\d:\d\d/gm, "12:00:00")).toBe(
    [
      "12:00:00  GET    200     1.3 ms    2 KiB  /v1/nodes?path=/",
      "12:00:00  GET    ---     1.3 ms      0 B  /v1/nodes?path=/  (broken off)",
      "12:00:00  removed blobs collected=3",
      "",
    ].join("\n"),
  );
  const colored = fakeOutput(true);
  createGatewayLog({ level: "info", json: false, output: colored.output, environment: {} }).info(request, "request");
  expect(colored.state.text).toContain("\u001b[32m200\u001b[0m");
});

test("what a client sends cannot move the cursor", () => {
  const { state, output } = fakeOutput(true);
  const log = createGatewayLog({ level: "info", json: false, output, environment: { NO_COLOR: "1" } });
  log.info({ ...request, path: "/\u001b]0;x\u0007\u009b2J\r\n" }, "request");
  expect(state.text).toContain("/\\x1b]0;x\\x07\\x9b2J\\x0d\\x0a?path=/");
  expect(state.text.split("\n").length).toBe(2);
});

test("programs get JSON lines, and whoever does not read them neither stops nor fills the gateway", () => {
  for (const [isTTY, json] of [
    [true, true],
    [false, false],
  ] as const) {
    const { state, output } = fakeOutput(isTTY);
    const log = createGatewayLog({ level: "info", json, output });
    log.info(request, "request");
    expect(JSON.parse(state.text)).toMatchObject({ ...request, level: "info", msg: "request" });
    state.writableLength = 2 ** 20;
    log.info(request, "request");
    state.writableLength = 0;
    state.fail();
    log.info(request, "request");
    expect(state.text.split("\n").length).toBe(2);
  }
});

test.each([false, true])(
  "wsfs gateway (bare: %j) shows how to reach it: what it says is run as it stands",
  async (bare) => {
    const place = createPlace();
    onTestFinished(() => place.cleanUp());
    const child = place.spawnWsfs([
      "gateway",
      "--data",
      "it's here",
      "--workspace",
      "a 'b' c",
      ...(bare ? ["--bare"] : []),
    ]);
    let said = "";
    child.stdout?.on("data", (text: Buffer) => {
      said += text.toString();
    });
    await vi.waitUntil(() => said.includes("mount:"), { timeout: 50_000 });
    const shown = (what: string) => new RegExp(`^ +${what}: +(.*)$`, "m").exec(said)?.[1] ?? "";
    const shell = (script: string) => place.sh(`wsfs() { '${process.execPath}' '${MAIN}' "$@"; }\n${script}`);
    const asked = await shell(`${shown("try")} -sSf`);
    expect([asked.code, asked.stderr, Object.keys(JSON.parse(asked.stdout))]).toEqual([
      0,
      "",
      expect.arrayContaining([bare ? "paging" : "items"]),
    ]);
    expect((await shell(`${shown("token")} && stat -c %a token`)).stdout).toBe("600\n");
    expect(shown("mount")).toContain(`--workspace 'a '\\''b'\\'' c' --token-file token`);
    if (bare) expect(shown("mount")).toMatch(/--profile '.*bare.profile.json'$/);
    else expect((await shell(`curl -sSf ${shown("read").split(" ")[0]}`)).stdout).toContain("<html");
  },
);

/** `wsfs gateway`, up to its first line of standard output. */
async function startGateway(...args: string[]) {
  const data = await temporaryFolder();
  const child = spawn(process.execPath, [MAIN, "gateway", "--data", data, "--json", ...args], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  const ended = once(child, "exit");
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  const [line] = await once(createInterface(child.stdout), "line");
  const { baseUrl, token } = JSON.parse(String(line)) as { baseUrl: string; token: string };
  const call = async (path: string) => {
    const answer = await fetch(`${baseUrl}${path}`, { headers: { authorization: `Bearer ${token}` } });
    return (await answer.arrayBuffer()).byteLength;
  };
  return { child, ended, call, token };
}

test("wsfs gateway tells of each request once, without the token", async () => {
  const { child, call, token } = await startGateway();
  let told = "";
  child.stderr.on("data", (text: Buffer) => {
    told += text.toString();
  });
  const bytes = await call(`/v1/nodes?path=/&access_token=${token}`);
  await call("/v1/nodes");
  await vi.waitUntil(() => told.split("\n").length > 2, { timeout: 50_000 });
  const lines = told
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as object);
  expect(lines).toMatchObject([
    { method: "GET", path: "/v1/nodes", query: "path=/&access_token=…", status: 400, bytes, ms: expect.any(Number) },
    { method: "GET", path: "/v1/nodes", status: 200 },
  ]);
  expect(told).not.toContain(token);
});

test("wsfs gateway --quiet tells of none", async () => {
  const { child, ended, call } = await startGateway("--quiet");
  let told = "";
  child.stderr.on("data", (text: Buffer) => {
    told += text.toString();
  });
  await call("/v1/nodes?path=/");
  child.kill("SIGTERM");
  expect(await ended).toEqual([0, null]);
  expect(told).toBe("");
});

test("wsfs gateway serves and ends though nobody reads what it says", async () => {
  const { child, ended, call } = await startGateway();
  child.stderr.pause();
  // More than any pipe holds.
  const long = "x".repeat(15_000);
  for (let index = 0; index < 60; index++) await call(`/v1/nodes?path=/${long}`);
  child.kill("SIGTERM");
  expect(await ended).toEqual([0, null]);
});
