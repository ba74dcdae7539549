/**
 * The behaviour cases on a mount of a bare gateway (gateway/bare.ts), through the profile that
 * ships with it. What a program sees other than on a disk is written down at the end of
 * docs/gateway/profiles.md, which is made of this run (`WSFS_WRITE_TABLES=1` writes it) and must be what this run shows.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { BARE_PROFILE } from "../../src/gateway/start.ts";
import { createPlace, type Place, type TestGateway, type TestMount } from "../support/wsfs.ts";
import { CASES } from "./cases/all.ts";
import { readReport, withReport } from "./support/bare-report.ts";
import { contentsOf, readTree, type Tree } from "./support/tree.ts";
import { createWorker, type Worker } from "./support/worker.ts";

const REPORT = fileURLToPath(new URL("../../docs/gateway/profiles.md", import.meta.url));
const MAKES_IT_ANEW = process.env.WSFS_WRITE_TABLES === "1";
const PROFILE = ["--profile", BARE_PROFILE];

let place: Place;
let gateway: TestGateway;
let mount: TestMount;
let worker: Worker;
/** Case to errno. */
const refused: Record<string, string> = {};
const shown = new Set<string>();

beforeAll(async () => {
  place = createPlace();
  gateway = await place.gateway({ args: ["--bare"] });
  mount = await place.mount(gateway, { args: ["--allow-other", ...PROFILE] });
  await place.sh("chmod 755 .");
  worker = createWorker(mount.dir);
});
afterAll(async () => {
  worker?.end();
  await place.cleanUp();
});

describe.each(Object.entries(CASES))("%s", (group, cases) => {
  test.each(Object.keys(cases))("%s", async (name) => {
    const outcome = await worker.run(`${group}/${name}`, 180_000);
    if ("notHere" in outcome) return;
    shown.add(`${group}/${name}`);
    if ("passed" in outcome) return;
    // What cannot be there is refused with the one errno that says so, and fails in no other way.
    expect(outcome.error).toMatch(/EPERM|Operation not permitted/);
    refused[`${group}/${name}`] = "EPERM";
  });
});

test("content and names are on another mount, and the report says what is not", { timeout: 600_000 }, async () => {
  worker.end();
  const left = await readTree(place, mount.dir);
  expect(Object.keys(left).length).toBeGreaterThan(500);
  await mount.umount("--drain=240");
  const another = await place.mount(gateway, { name: "another", args: PROFILE });
  const found = await readTree(place, another.dir);
  expect(contentsOf(found)).toEqual(contentsOf(left));
  const page = readFileSync(REPORT, "utf8");
  const made = withReport(page, {
    refused,
    total: Object.values(CASES).flatMap(Object.keys).length,
    kept: keptOf(left, found),
  });
  if (MAKES_IT_ANEW) writeFileSync(REPORT, made);
  // A case that could not be shown here says nothing about the report.
  const isShown = (name: string) => shown.has(name);
  expect(readReport(made, isShown)).toEqual(readReport(page, isShown));
});

/** For each thing one can see of a name, whether the other mount shows the same. */
function keptOf(left: Tree, found: Tree): Record<string, boolean> {
  const isSame = (key: keyof Tree[string]) =>
    Object.entries(left).every(([path, entry]) => JSON.stringify(entry[key]) === JSON.stringify(found[path]?.[key]));
  return {
    "names and folders": Object.keys(left).join("\n") === Object.keys(found).join("\n"),
    contents: isSame("sha256"),
    sizes: isSame("size"),
    modes: isSame("mode"),
    "modification times": isSame("mtime"),
    "extended attributes": isSame("xattrs"),
  };
}
