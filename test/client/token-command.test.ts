/** Tokens a program prints: when it is run, what it may print, and what is told when it fails. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type TokenCommandOptions, tokenCommand } from "../../src/client/token-command.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { createVirtualClock } from "../support/virtual-clock.ts";
import { exampleNode } from "./support/examples.ts";
import { answerJson, clientFor, failureOf } from "./support/server.ts";

/** A program that prints one line of `outputs` after the other, and counts. */
async function program(outputs: readonly string[], options: Omit<TokenCommandOptions, "clock"> = {}) {
  const folder = await temporaryFolder();
  const [script, counter] = [join(folder, "token.sh"), join(folder, "count")];
  await writeFile(
    script,
    `counter=$1
     shift
     printf x >>"$counter"
     number=$(wc -c <"$counter")
     [ "$number" -le $# ] || number=$#
     shift $((number - 1))
     case $1 in
       exit*) printf 'line\nthe reason\n' >&2; exit \${1#exit } ;;
       hang) exec sleep 1000 ;;
       deaf) trap '' TERM; while :; do sleep 0.1; done ;;
       ask) cat; echo asked ;;
       *) printf '%s\n' "$1" ;;
     esac`,
  );
  const clock = createVirtualClock();
  const credentials = tokenCommand("sh", [script, counter, ...outputs], { clock, ...options });
  return { credentials, clock, runs: async () => (await readFile(counter, "utf8")).length };
}

const jwt = (claims: object) =>
  ["{}", JSON.stringify(claims), "s"].map((part) => Buffer.from(part).toString("base64url")).join(".");

test("it is run once for many calls, and not again while its token is good", async () => {
  const { credentials, clock, runs } = await program(["one", "two"]);
  const tokens = await Promise.all(Array.from({ length: 10 }, () => credentials.token()));
  await clock.advance(10 * 365 * 86_400_000);
  expect(new Set([...tokens, await credentials.token()])).toEqual(new Set(["one"]));
  expect(await runs()).toBe(1);
});

const inAnHour = new Date(createVirtualClock().wallClock() + 3_600_000).toISOString();

test.each([
  ["its JSON", JSON.stringify({ token: "one", expiresAt: inAnHour }), "one"],
  ["OAuth's JSON", JSON.stringify({ access_token: "one", expires_in: 3600, token_type: "Bearer" }), "one"],
  ["the token itself", jwt({ exp: (createVirtualClock().wallClock() + 3_600_000) / 1000 }), undefined],
])("it is run again a little before the end that %s tells", async (_, output, token = output) => {
  const { credentials, clock, runs } = await program([output, "two"]);
  expect(await credentials.token()).toBe(token);
  await clock.advance(3_600_000 - 31_000);
  expect(await credentials.token()).toBe(token);
  expect(await runs()).toBe(1);
  await clock.advance(2000);
  expect(await credentials.token()).toBe("two");
});

test("a token of a short life is replaced after half of it; one that is over, not without pause", async () => {
  const short = (token: string, seconds: number) => JSON.stringify({ access_token: token, expires_in: seconds });
  const { credentials, clock, runs } = await program([short("one", 20), short("two", 0), "three"]);
  await credentials.token();
  await clock.advance(9000);
  expect(await credentials.token()).toBe("one");
  await clock.advance(2000);
  expect([await credentials.token(), await credentials.token()]).toEqual(["two", "two"]);
  expect(await runs()).toBe(2);
  await clock.advance(1001);
  expect(await credentials.token()).toBe("three");
});

test("while the old token is good, a failure to replace it is none", async () => {
  const hour = JSON.stringify({ token: "one", expiresAt: inAnHour });
  const { credentials, clock } = await program([hour, "exit 3", "exit 3", "two"]);
  await credentials.token();
  await clock.advance(3_600_000 - 10_000);
  expect(await credentials.token()).toBe("one");
  await clock.advance(10_000);
  await failureOf(credentials.token());
  expect(await credentials.token()).toBe("two");
});

test("a refused token is replaced once, for all calls that met the refusal", async () => {
  const { credentials, runs } = await program(["old", "new"]);
  const seen: unknown[] = [];
  const client = await clientFor(
    (request, response) => {
      seen.push(request.headers.authorization);
      if (request.headers.authorization === "Bearer old") answerJson(response, 401, { title: "expired" });
      else answerJson(response, 200, exampleNode());
    },
    { credentials },
  );
  await Promise.all([client.getNode("n1"), client.getNode("n1"), client.getNode("n1")]);
  expect(await runs()).toBe(2);
  expect(seen.filter((token) => token === "Bearer new")).toHaveLength(3);
});

test("the same token again is no other", async () => {
  const { credentials } = await program(["one"]);
  expect(await credentials.token()).toBe("one");
  expect(await credentials.renew("one")).toBeUndefined();
});

test("it is not waited for when it asks a question: its input is at an end", async () => {
  const { credentials } = await program(["ask"]);
  expect(await credentials.token()).toBe("asked");
});

test.each<[string, string, string]>([
  ["fails", "exit 3", "it ended with exit code 3: the reason"],
  ["prints nothing", "", "got nothing"],
  ["prints several lines", "secret\nsecret", "got several words or lines"],
  ["prints JSON without a token", '{"secret":"secret"}', 'expected a token, or JSON with "token"'],
  ["prints an end that is no time", '{"token":"secret","expiresAt":"soon"}', "expiresAt: expected a time"],
  ["prints too much", "secret".repeat(20_000), "printed more than 65536 bytes"],
])("a program that %s is named, with the reason, and without its output and arguments", async (_, output, message) => {
  const { credentials } = await program([output]);
  const error = await failureOf(credentials.token());
  expect(error.code).toBe("unauthorized");
  expect(error.message).toContain("token command sh: ");
  expect(error.message).toContain(message);
  expect(error.message).not.toMatch(/secret|token\.sh/);
});

test.each(["hang", "deaf"])("a program that takes too long is ended: %s", async (output) => {
  const { credentials } = await program([output], { timeoutMs: 1000 });
  const error = await failureOf(credentials.token());
  expect(error.message).toContain("it took longer than 1 s");
});

test("a program that is not there is named", async () => {
  const error = await failureOf(tokenCommand("/nowhere/helper").token());
  expect(error).toMatchObject({ code: "unauthorized", isAmbiguous: false });
  expect(error.message).toContain("token command helper: it cannot be run (ENOENT)");
});
