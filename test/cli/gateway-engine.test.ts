/** `wsfs gateway engine …` as the owner of a gateway calls it, while that runs and while it does not. */
import { writeFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { execution, logPage } from "../../src/contract/engines.ts";
import { createPlace, type Place, type TestGateway } from "../support/wsfs.ts";

let place: Place;
beforeEach(() => {
  place = createPlace();
});
afterEach(() => place.cleanUp());

const engine = async (...args: string[]) => {
  const { code, stdout, stderr } = await place.wsfs(["gateway", "engine", ...args], {
    env: { WSFS_DATA: place.path("gateway") },
  });
  return [code, stdout, stderr];
};

async function api({ baseUrl, token }: TestGateway, method: string, path: string, json?: object) {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const body = json === undefined ? {} : { body: JSON.stringify(json) };
  const answer = await fetch(`${baseUrl}${path}`, { method, headers, ...body });
  return answer.json();
}

test("an engine is added, listed, shown and removed; what follows -- is its own", async () => {
  expect(await engine("list")).toEqual([1, "", expect.stringContaining("is no folder of a gateway")]);
  const gateway = await place.gateway();
  expect(await engine()).toEqual([0, "There are no engines. wsfs gateway engine add makes one.\n", ""]);
  writeFileSync(place.path("schema.json"), '{"type":"object"}');
  const words = [
    "--time-limit",
    "60",
    "--scope",
    "node.file.read",
    "--input-schema",
    "schema.json",
    "--description",
    "d",
  ];
  const command = ["sh", "-c", 'echo "$@"', "sh", "--data", "-x", "a b"];
  expect(await engine("add", "say", ...words, "--", ...command)).toEqual([0, "There is an engine say\n", ""]);
  const shown = JSON.parse(String((await engine("show", "say", "--json"))[1]));
  expect(shown).toMatchObject({
    ...{ name: "say", description: "d", command, timeLimitSeconds: 60, inputSchema: { type: "object" } },
    scopes: ["node.file.read"],
  });
  expect(await engine("list")).toEqual([0, "say  sh -c 'echo \"$@\"' sh --data -x 'a b'\n", ""]);
  // The gateway that runs has it at once.
  await api(gateway, "POST", "/v1/installations", { engine: "say" });
  const started = execution.parse(await api(gateway, "POST", "/v1/executions", { engine: "say", input: {} }));
  const now = async () => execution.parse(await api(gateway, "GET", `/v1/executions/${started.id}`));
  await expect.poll(async () => (await now()).state, { timeout: 30_000 }).toBe("succeeded");
  const log = logPage.parse(await api(gateway, "GET", `/v1/executions/${started.id}/logs`));
  expect(log.items.map(({ text }) => text)).toEqual(["--data -x a b"]);
  await gateway.stop();
  expect(await engine("remove", shown.id)).toEqual([0, "There is no engine say any more\n", ""]);
  expect((await engine("remove", "say"))[2]).toBe("wsfs: there is no engine say; there is none\n");
});

test("of two that add one name at once, one is told that it is there already", async () => {
  await (await place.gateway()).stop();
  const add = (word: string) => engine("add", "same", "--", "echo", word);
  const both = await Promise.all([add("a"), add("b")]);
  expect(both.map(([code]) => code).sort()).toEqual([0, 1]);
  const taken = "wsfs: there is an engine same already; it is changed by removing it first\n";
  expect(both.find(([code]) => code === 1)?.[2]).toBe(taken);
});

test("what is wrong is told in a line, and adds nothing", async () => {
  await (await place.gateway()).stop();
  const refused = async (...args: string[]) => {
    const [code, stdout, stderr] = await engine("add", ...args);
    expect(stdout).toBe("");
    expect(stderr).toMatch(/^wsfs: [^\n]+\n$/);
    return [code, String(stderr).slice("wsfs: ".length, -1)];
  };
  const needs = 'gateway engine add needs a command after "--": wsfs gateway engine add … -- COMMAND…';
  expect(await refused("x")).toEqual([2, needs]);
  expect(await refused("x", "--")).toEqual([2, needs]);
  expect((await refused("--", "x"))[0]).toBe(2);
  expect((await refused("a/b", "--", "true"))[1]).toMatch(/^an engine's name has 1 to 64 letters/);
  expect((await refused("x", "--scope", "node", "--", "true"))[0]).toBe(2);
  expect((await refused("x", "--time-limit", "0", "--", "true"))[1]).toMatch(
    /expected a whole number of seconds from 1 to 604800/,
  );
  expect((await refused("x", "--input-schema", "none", "--", "true"))[1]).toMatch(/none cannot be read \(ENOENT\)/);
  for (const [text, why] of [
    ["{", "it is no JSON"],
    ["[]", "expected an object"],
    ['{"type":"objct"}', "is not one of JSON Schema 2020-12"],
    ['{"$ref":"https://example.com/schema"}', "can't resolve reference"],
  ]) {
    writeFileSync(place.path("s.json"), String(text));
    expect((await refused("x", "--input-schema", "s.json", "--", "true"))[1]).toContain(why);
  }
  expect((await engine("list"))[1]).toMatch(/^There are no engines/);
});
