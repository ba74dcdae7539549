/** Executions followed through breaks and waited for; removals whose answer is lost; what an engine's program finds. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { connect, type Gateway } from "../../../src/client/connect.ts";
import { staticToken } from "../../../src/client/credentials.ts";
import type { RemoteError } from "../../../src/client/errors.ts";
import { createHttpTransport } from "../../../src/client/http-transport.ts";
import type { LogLine } from "../../../src/contract/engines.ts";
import type { HttpAnswer, Transport } from "../../../src/contract/http.ts";
import { startGateway } from "../../../src/gateway/start.ts";
import { run } from "../../support/child.ts";
import { SEED } from "../../support/seed.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { addEngine } from "../support/add-engine.ts";
import { bytesOfStream, STEADY, type StreamFault, streamFaults } from "../support/faulty-stream.ts";
import { realGateway } from "../support/real-gateway.ts";
import { broken, json, type Scripted, type Step, scripted } from "../support/scripted-transport.ts";
import { failureOf } from "../support/server.ts";

const TIME = "2026-01-02T03:04:05.678Z";
const LOG: readonly LogLine[] = Array.from({ length: 30 }, (_, index) => ({
  number: index + 1,
  time: TIME,
  stream: index % 3 === 0 ? "err" : "out",
  text: `grüße ${index} 🎉`,
}));
const END = `event: end\ndata: ${JSON.stringify({ state: "succeeded", exitCode: 0, detail: null })}\n\n`;
const eventOf = (line: LogLine) => `id: ${line.number}\ndata: ${JSON.stringify(line)}\n\n`;
const execution = {
  ...{ id: "e1", engine: { id: "g1", name: "greet" }, workspace: { id: "w1", name: "main" }, installationId: "i1" },
  ...{ state: "succeeded", input: null, cause: null, createdAt: TIME, startedAt: TIME, endedAt: TIME, exitCode: 0 },
  ...{ detail: null, logBytes: 30, by: null },
};

/** A gateway that streams the log, each connection with its fault; other calls get the execution. */
function streaming(faults: readonly StreamFault[], afters: number[] = []): Step {
  return (request): HttpAnswer | Promise<HttpAnswer> => {
    if (!request.path.endsWith("/logs/stream")) return json(200, execution)(request);
    const after = Number(request.query.after);
    const fault = faults[afters.length] ?? STEADY;
    afters.push(after);
    const lines = LOG.slice(Math.max(0, after - fault.early));
    const text = `: the log\n\n${lines.map(eventOf).join(": heartbeat\n\n")}${END}`;
    return { status: 200, headers: { "content-type": "text/event-stream" }, body: bytesOfStream(text, fault) };
  };
}

async function allOf<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

/** All that follow gives, until it ends by itself. */
function all(script: Scripted, options: object = {}): Promise<LogLine[]> {
  return script.run(allOf(script.gateway.executions.follow("e1", options)));
}

describe("follow", () => {
  test("wherever streams break, each line comes once and in order, and the end ends it", async () => {
    await fc.assert(
      fc.asyncProperty(streamFaults(4500), async (faults) => {
        expect(await all(scripted([streaming(faults)]))).toEqual(LOG);
      }),
      { seed: SEED, numRuns: 200 },
    );
  });

  test("goes on after the last line that was given out, and begins where it is told to", async () => {
    const afters: number[] = [];
    const three = `: the log\n\n${LOG.slice(10, 13).map(eventOf).join(": heartbeat\n\n")}`;
    const fault: StreamFault = { ...STEADY, bytes: Buffer.byteLength(three), end: "broken" };
    expect(await all(scripted([streaming([fault], afters)]), { after: 10 })).toEqual(LOG.slice(10));
    expect(afters).toEqual([10, 13]);
  });

  test("waits breaks out however long, and tells each", async () => {
    const breaks: (string | undefined)[] = [];
    const onBreak = (error: RemoteError | undefined) => breaks.push(error?.code);
    const steps = [...Array.from({ length: 12 }, () => broken()), json(503, { title: "later" })];
    const tooEarly = streaming([{ ...STEADY, bytes: 20 }]);
    expect(await all(scripted([...steps, tooEarly, streaming([])]), { onBreak })).toEqual(LOG);
    expect(breaks).toEqual([...Array.from({ length: 12 }, () => "offline"), "server", undefined]);
  });

  test("without retries the first break ends it", async () => {
    const script = scripted([streaming([{ ...STEADY, bytes: 400, end: "broken" }])], { retries: false });
    expect(await script.run(failureOf(all(script)))).toMatchObject({ code: "offline" });
    expect(script.requests).toHaveLength(1);
  });

  test.each([400, 401, 403, 404])("a refusal with %i ends it", async (status) => {
    const script = scripted([json(status, { title: "no" })]);
    expect(await script.run(failureOf(all(script)))).toMatchObject({ status });
    expect(script.requests).toHaveLength(1);
  });

  test.each([
    ["a line without a number", 'data: {"text":"x"}\n\n', "number"],
    ["an end without a state", 'event: end\ndata: {"exitCode":0,"detail":null}\n\n', "state"],
    ["what is no JSON", "data: {\n\n", "JSON"],
  ])("%s ends it and is said", async (_, text, word) => {
    const headers = { "content-type": "text/event-stream" };
    const script = scripted([() => ({ status: 200, headers, body: bytesOfStream(text, STEADY) })]);
    const error = await script.run(failureOf(all(script)));
    expect(error).toMatchObject({ code: "malformed", message: expect.stringContaining(word) });
  });

  test("an abort ends it, also while it waits", async () => {
    const controller = new AbortController();
    const { gateway, clock } = scripted([broken()]);
    const failure = failureOf(gateway.executions.follow("e1", { signal: controller.signal }).next());
    while (clock.nextTimer() === undefined) await clock.settle();
    controller.abort();
    expect(await failure).toMatchObject({ code: "aborted" });
    expect(clock.nextTimer()).toBeUndefined();
  });
});

describe("wait", () => {
  test("asks for no line, waits breaks out, and answers the execution as it has ended", async () => {
    const nothing = scripted([
      broken(),
      (request) => {
        expect(request.query.after).toBe(String(Number.MAX_SAFE_INTEGER));
        return { status: 200, headers: { "content-type": "text/event-stream" }, body: bytesOfStream(END, STEADY) };
      },
      json(200, execution),
    ]);
    expect(await nothing.run(nothing.gateway.executions.wait("e1"))).toEqual(execution);
    expect(nothing.requests.map(({ path }) => path)).toEqual([
      "/v1/executions/e1/logs/stream",
      "/v1/executions/e1/logs/stream",
      "/v1/executions/e1",
    ]);
  });

  test("of one that is not there is refused", async () => {
    const { gateway } = await realGateway();
    expect(await failureOf(gateway.executions.wait("none"))).toMatchObject({ code: "notFound", status: 404 });
  });
});

/** A gateway that ends and comes again, at another port: nobody can keep the first one free meanwhile. */
async function restartable(script: string, timeLimitSeconds?: number) {
  const dataDir = await temporaryFolder();
  const { server, token } = await realGateway({}, { dataDir });
  addEngine(dataDir, "say", script, timeLimitSeconds);
  const first = createHttpTransport({ baseUrl: server.baseUrl });
  let current = first;
  const transport: Transport = { send: (request) => current.send(request), close: () => current.close() };
  const gateway = connect({ baseUrl: server.baseUrl, transport, credentials: staticToken(token) });
  onTestFinished(async () => void (await Promise.all([gateway.close(), first.close()])));
  await gateway.installations.create("say");
  const restart = async () => {
    await server.close();
    const again = await startGateway({ dataDir });
    onTestFinished(() => again.close());
    current = createHttpTransport({ baseUrl: again.baseUrl });
  };
  return { gateway, restart };
}

test("a real gateway that is restarted is followed on, to the end: what ran is interrupted", async () => {
  const { gateway, restart } = await restartable("echo one; echo two; sleep 600");
  const { id } = await gateway.executions.start("say");
  const waited = gateway.executions.wait(id);
  const texts: string[] = [];
  let breaks = 0;
  let restarted: Promise<void> | undefined;
  const onBreak = () => {
    breaks += 1;
  };
  for await (const { text, stream } of gateway.executions.follow(id, { onBreak })) {
    if (stream === "out") texts.push(text);
    if (texts.length === 2) restarted ??= restart();
  }
  await restarted;
  expect(texts).toEqual(["one", "two"]);
  expect(breaks).toBeGreaterThan(0);
  expect(await waited).toMatchObject({ state: "interrupted", id });
  expect(await gateway.executions.get(id)).toMatchObject({ state: "interrupted", exitCode: null });
});

test("one that runs longer than it may has timed out", async () => {
  const { gateway } = await restartable("sleep 600", 1);
  const { id } = await gateway.executions.start("say");
  expect(await gateway.executions.wait(id)).toMatchObject({ state: "timed-out", detail: expect.any(String) });
});

describe("a removal", () => {
  const removals: [string, (gateway: Gateway) => Promise<void>, string][] = [
    ["installation", (gateway) => gateway.installations.remove("x"), "/v1/installations/x"],
    ["API key", (gateway) => gateway.apiKeys.revoke("x"), "/v1/api-keys/x"],
    ["trigger", (gateway) => gateway.triggers.remove("x"), "/v1/triggers/x"],
  ];
  const gone = json(404, { title: "there is no such thing" });
  test.each(removals)("whose answer was lost is done, where it is gone then: %s", async (_, remove, path) => {
    const { gateway, requests, run: drive } = scripted([broken(), gone]);
    await drive(remove(gateway));
    expect(requests.map(({ method, path: asked }) => [method, asked])).toEqual([
      ["DELETE", path],
      ["DELETE", path],
    ]);
  });

  test.each(removals)("of what was not there at first is refused: %s", async (_, remove) => {
    const { gateway, run: drive } = scripted([gone]);
    expect(await drive(failureOf(remove(gateway)))).toMatchObject({ code: "notFound" });
  });

  test("that is refused when it is repeated is refused", async () => {
    const { gateway, run: drive } = scripted([broken(), json(403, { title: "no" })]);
    expect(await drive(failureOf(gateway.triggers.remove("x")))).toMatchObject({ code: "forbidden" });
  });
});

test("an API key or a workspace whose answer was lost is not made twice", async () => {
  const { gateway, requests, run: drive } = scripted([broken()]);
  expect(await drive(failureOf(gateway.apiKeys.create("k", ["node.file.read"])))).toMatchObject({ code: "offline" });
  expect(await drive(failureOf(gateway.workspaces.create("w")))).toMatchObject({ code: "offline" });
  expect(requests).toHaveLength(2);
});

describe("engine()", () => {
  const index = fileURLToPath(new URL("../../../dist/client/index.js", import.meta.url));
  const writeProgram = (folder: string) => {
    const file = join(folder, "engine.mjs");
    writeFileSync(
      file,
      `import { engine } from ${JSON.stringify(index)};
       try {
         const { gateway, ...rest } = engine();
         const node = await gateway.files.upload("/by-engine", "x");
         await gateway.close();
         console.log(JSON.stringify({ ...rest, by: node.id }));
       } catch ({ name, code, field, message }) {
         console.log(JSON.stringify({ name, code, field, message }));
       }`,
    );
    return file;
  };

  test("outside of a gateway says what is missing, whichever it is", async () => {
    const file = writeProgram(await temporaryFolder());
    const variables = { WSFS_BASE_URL: "http://127.0.0.1:9", WSFS_TOKEN: "t", WSFS_WORKSPACE: "w" };
    const whole: Record<string, string> = { ...variables, WSFS_EXECUTION: "e", WSFS_FOLDER: "f" };
    for (const field of Object.keys(whole)) {
      const { [field]: _, ...env } = whole;
      for (const some of [env, { ...env, [field]: "" }]) {
        const { stdout } = await run(process.execPath, [file], { env: some, input: "null" });
        expect(JSON.parse(stdout)).toEqual({
          ...{ name: "RemoteError", code: "invalid", field },
          message: `engine: expected ${field} in the environment: is it the gateway that runs this?`,
        });
      }
    }
  });

  test("in one is connected as the execution, in its workspace, with its input", async () => {
    const dataDir = await temporaryFolder();
    const { gateway } = await realGateway({}, { dataDir });
    const scopes = ["node.node.create", "node.file.read", "node.node.update", "node.journal.create"];
    addEngine(dataDir, "sdk", `exec '${process.execPath}' '${writeProgram(dataDir)}'`, 60, scopes);
    const { folderId, workspace } = await gateway.installations.create("sdk");
    const { id } = await gateway.executions.start("sdk", { input: { deep: ["ä"] } });
    const [line, ...more] = await allOf(gateway.executions.follow(id));
    expect(more).toEqual([]);
    const { by, ...found } = z.looseObject({ by: z.string() }).parse(JSON.parse(line?.text ?? ""));
    expect(found).toEqual({ input: { deep: ["ä"] }, executionId: id, workspace: workspace.id, folderId });
    const entries = await gateway.journal.list().all();
    expect(entries.find(({ nodeId }) => nodeId === by)?.by).toMatchObject({ execution: id });
  });
});
