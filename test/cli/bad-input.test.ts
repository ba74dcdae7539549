/** What is typed wrong, or names the wrong thing: a line that says what was expected, an exit code, nothing changed. */
import { mkdirSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createPlace, type Place } from "../support/wsfs.ts";

let place: Place;
beforeAll(() => {
  place = createPlace();
  for (const folder of ["m", "full", "foreign"]) mkdirSync(place.path(folder));
  for (const file of ["file", "full/x", "foreign/a"]) writeFileSync(place.path(file), "");
  for (const [name, text] of [
    ["t", "token"],
    ["empty", ""],
    ["words", "two words\n"],
    ["bytes", "\u00ff\u0001"],
  ] as const) {
    writeFileSync(place.path(name), text, { mode: 0o600 });
  }
  // Allowed as a file; what it becomes as part of another JSON is too much.
  writeFileSync(place.path("long"), `${"\n".repeat(62_000)}{"name":"x"}`);
  symlinkSync("loop", place.path("loop"));
});
afterAll(() => place.cleanUp());

const URL = ["--base-url", "http://127.0.0.1:9"];
const WITH = [...URL, "--workspace", "w", "--token-file", "t"];
const token = (file: string) => ["mount", "m", ...URL, "--workspace", "w", "--token-file", file];
const url = (text: string) => ["mount", "m", "--workspace", "w", "--token-file", "t", "--base-url", text];

const CASES: readonly (readonly [args: readonly string[], code: number, line: string | RegExp])[] = [
  [["nonsense"], 2, "unknown command: nonsense; wsfs --help lists them"],
  [["mont", "m"], 2, "unknown command: mont. Did you mean mount?"],
  [["gateway", "tokens", "--data", "g"], 2, "unknown command: gateway tokens. Did you mean token?"],
  [["mount", "m", "m2", ...WITH], 2, "unknown argument: m2"],
  [["mount", "", ...WITH], 2, 'mount: expected a folder as DIR, got ""'],
  [["mount", "m", ...WITH, "-o", "ro"], 2, "unknown argument: -o"],
  [["mount", "m", ...WITH, "--no-read-only"], 2, "unknown argument: --no-read-only"],
  [["mount", "m", ...WITH, "--json"], 2, "unknown argument: --json"],
  [["mount", "m", ...WITH, "--read-only=x"], 2, '--read-only: expected no value, or 1 or 0, got "x"'],
  [["mount", "m", ...WITH, "--allow-other="], 2, '--allow-other: expected no value, or 1 or 0, got ""'],
  [["mount", "m", ...WITH, "--background", "--background"], 2, "--background may be given only once"],
  [["mount", "m", ...WITH, "--workspace", "x"], 2, "--workspace may be given only once"],
  [["mount", "m", ...WITH, "--cache-size", "-1"], 2, /^--cache-size: expected a number of bytes .*, got "-1"$/],
  [["mount", "m", ...WITH, "--wait", "never"], 2, '--wait: expected a number of seconds from 0, got "never"'],
  [["mount", "--help=x"], 2, '--help: expected no value, or 1 or 0, got "x"'],
  [["status", "m", "--json=x"], 2, '--json: expected no value, or 1 or 0, got "x"'],
  [["drain", "m", "--timeout=-1"], 2, '--timeout: expected a number of seconds from 0, got "-1"'],
  [["umount", "m", "--drain=x"], 2, '--drain: expected a number of seconds from 0, got "x"'],
  [["umount", "/"], 3, "nothing of wsfs is mounted at /"],
  [url("http://127.0.0.1:99999"), 2, /^--base-url: expected a URL .*, got "http:\/\/127.0.0.1:99999"$/],
  [url("http://me:secret@h"), 2, /^--base-url: expected a URL .*, got "http:\/\/…@h"$/],
  [token("empty"), 1, /the token cannot be used: token file \S+empty: expected one word .*, got nothing$/],
  [token("words"), 1, /the token cannot be used: token file \S+words: .*, got several words or lines$/],
  [token("bytes"), 1, /the token cannot be used: token file \S+bytes: .*, got other characters$/],
  [token("loop"), 1, "--token-file: loop cannot be read (ELOOP)"],
  [token("t/x"), 1, "--token-file: t/x cannot be read (ENOTDIR)"],
  [token("/dev/null"), 1, "--token-file: /dev/null is not a file"],
  [["mount", "m", ...WITH, "--profile", "long"], 1, "the profile is too long"],
  [["mount", "loop", ...WITH], 1, "loop: too many symbolic links"],
  [["mount", "a".repeat(300), ...WITH], 1, /a{300} cannot be looked at \(ENAMETOOLONG\)$/],
  [["mount", "m", ...WITH, "--state-dir", "foreign"], 1, /^the state dir \S+foreign is not a mount's: it holds "a"/],
  [["mount", "m", ...WITH, "--state-dir", "m"], 1, /^--state-dir m is the folder to mount on; /],
  [["mount", "m", ...WITH, "--state-dir", "m/s"], 1, /^--state-dir m\/s lies inside m, which would hide it; /],
  [["mount", "m", ...WITH, "--state-dir", "."], 1, /^m lies inside --state-dir \.; /],
  [["gateway", "--data", "file"], 1, "--data: file cannot be used (ENOTDIR)"],
  [
    ["gateway", "--data", "g", "--token-life", "0"],
    2,
    '--token-life: expected a whole number of seconds from 1, got "0"',
  ],
  [["gateway", "--data", "g", "--retry-after", "1.5"], 2, /^--retry-after: expected a whole number of seconds from 0/],
  [["gateway", "--data", "g", "--download-speed", "9T"], 2, /^--download-speed: expected at most 1e12 bytes a second/],
  [
    ["gateway", "--data", "g", "--fault", "error=0.1", "--fault", "all:error=0.2"],
    2,
    "--fault: expected one rate for each, got all:error twice",
  ],
  [
    ["gateway", "--data", "g", "--fault", "upload:error=0.6", "--fault", "upload:throttled=0.6"],
    2,
    "--fault: expected rates of upload that sum up to 1 at most, got 1.2",
  ],
  [
    ["gateway", "--data", "g", "--fail-rate", "0.5", "--fault", "all:error=0.6"],
    2,
    "--fail-rate and --fault: expected rates of all and a fail rate that sum up to 1 at most, got 1.1",
  ],
  [
    ["gateway", "--data", "g", "--workspace", "main", "--quota", "mian=1G"],
    2,
    '--quota: there is no workspace "mian", only "main"',
  ],
  [
    ["gateway", "--data", "g", "--quota", "1G", "--quota", "2G"],
    2,
    "--quota: the quota of each workspace is given twice",
  ],
  [["gateway", "--data", "g", "--quota", "a=1G", "--quota", "a=1G"], 2, '--quota: the quota of "a" is given twice'],
  // What makes keys would outlive its execution by them.
  [
    ["gateway", "engine", "add", "e", "--data", "g", "--scope", "account.key.create", "--", "true"],
    2,
    /^--scope: expected one of /,
  ],
  [["gateway", "--data", "g", "--issuer", "https://id.example.com"], 2, /^--issuer and --client-id go together/],
  [["gateway", "--data", "g", "--client-secret-file", "file"], 2, /^--issuer and --client-id go together/],
  [
    ["gateway", "--data", "g", "--issuer", "http://id.example.com", "--client-id", "x"],
    2,
    '--issuer: expected an https URL, or one of this machine, got "http://id.example.com"',
  ],
  [
    [
      "gateway",
      "--data",
      "g",
      "--issuer",
      "https://id.example.com",
      "--client-id",
      "x",
      "--client-secret-file",
      "file",
    ],
    1,
    "--client-secret-file: others may read file; chmod 600 file",
  ],
  [
    ["gateway", "user", "add", "ada", "--data", "g", "--outside", "--generate"],
    2,
    "--outside and --generate exclude each other: such an account has no password",
  ],
  [["gateway", "--data", "foreign"], 1, /^--data: foreign is not a gateway's: it holds "a"/],
  [["start", "file/x"], 1, "file/x cannot be made (ENOTDIR)"],
  [["start", "full"], 1, "full is not empty (1 entry); choose an empty folder"],
  [["start", "m", "--data", "m"], 1, /^--data m is the folder to mount on; /],
  [["start", "m", "--data", "foreign"], 1, /^--data: foreign is not a gateway's: /],
];

// Two at a time, as there are no more processors where it matters.
it.concurrent.each(CASES)("wsfs %j ends with %i", async (args, code, line) => {
  const finished = await place.wsfs(args);
  expect(finished, finished.stderr).toMatchObject({ code, stdout: "" });
  const text = /^wsfs: ([^\n]+)\n$/.exec(finished.stderr)?.[1] ?? finished.stderr;
  if (typeof line === "string") expect(text).toBe(line);
  else expect(text).toMatch(line);
});

it("leaves folders of others as they are", async () => {
  const before = statSync(place.path("foreign"));
  for (const args of [
    ["gateway", "--data", "foreign"],
    ["mount", "m", ...WITH, "--state-dir", "foreign"],
  ]) {
    expect((await place.wsfs(args)).code).toBe(1);
  }
  expect(readdirSync(place.path("foreign"))).toEqual(["a"]);
  const after = statSync(place.path("foreign"));
  expect([after.mode, after.mtimeMs]).toEqual([before.mode, before.mtimeMs]);
  expect(readdirSync(place.path("m"))).toEqual([]);
});

it("says so where nothing can be made", async () => {
  mkdirSync(place.path("fixed"));
  expect((await place.sh("mount -t tmpfs -o ro none fixed")).code).toBe(0);
  try {
    for (const [args, line] of [
      [["start", "fixed/m"], "fixed/m cannot be made (EROFS)"],
      [["gateway", "--data", "fixed/g"], "--data: fixed/g cannot be used (EROFS)"],
      [
        ["mount", "m", ...WITH, "--state-dir", "fixed/s"],
        `the state dir ${place.path("fixed/s")} cannot be used (EROFS)`,
      ],
    ] as const) {
      expect(await place.wsfs(args)).toMatchObject({ code: 1, stdout: "", stderr: `wsfs: ${line}\n` });
    }
  } finally {
    await place.sh("umount fixed");
    rmSync(place.path("fixed"), { recursive: true });
  }
});
