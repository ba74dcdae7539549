/**
 * Every behaviour case on a plain folder (the control: what is expected there is what a disk does)
 * and on a mount, and on the mount of an ordinary user, made by fusermount3; and what the cases left
 * on a mount is on the next one, with all its attributes.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { becomeOrdinaryUser, type OrdinaryUser, whyNoOrdinaryUser } from "../support/ordinary-user.ts";
import { createPlace, type Place, type TestGateway, type TestMount } from "../support/wsfs.ts";
import { CASES } from "./cases/all.ts";
import { readTree } from "./support/tree.ts";
import { createWorker, type Worker } from "./support/worker.ts";

function everyCase(worker: () => Worker): void {
  for (const [group, cases] of Object.entries(CASES)) {
    describe(group, () => {
      for (const name of Object.keys(cases)) {
        test(name, async ({ skip }) => {
          const outcome = await worker().run(`${group}/${name}`);
          if ("notHere" in outcome) skip(outcome.notHere);
          expect(outcome, "error" in outcome ? outcome.error : "").toHaveProperty("passed", true);
        });
      }
    });
  }
}

describe("on a plain folder", () => {
  let place: Place;
  let worker: Worker;
  beforeAll(async () => {
    place = createPlace();
    await place.sh("mkdir plain");
    worker = createWorker(place.path("plain"));
  });
  afterAll(async () => {
    worker.end();
    await place.cleanUp();
  });
  everyCase(() => worker);
});

/** `become`: whom the gateway and the mount belong to, and who runs the cases; without: us. */
function onMount(mountArguments: readonly string[], become?: () => Promise<OrdinaryUser>): void {
  let user: OrdinaryUser | undefined;
  let place: Place;
  let gateway: TestGateway;
  let mount: TestMount;
  let worker: Worker;
  beforeAll(async () => {
    user = await become?.();
    place = createPlace(undefined, user);
    gateway = await place.gateway();
    mount = await place.mount(gateway, { args: mountArguments });
    // Some cases become another user, who has to get there.
    await place.sh("chmod 755 .");
    worker = createWorker(mount.dir, user);
  });
  afterAll(async () => {
    worker.end();
    await place.cleanUp();
    await user?.end();
  });
  everyCase(() => worker);

  test("all that the cases left is on another mount, with content, modes, times, links and attributes", async () => {
    worker.end();
    const left = await readTree(place, mount.dir);
    expect(Object.keys(left).length).toBeGreaterThan(500);
    await mount.umount("--drain=120");
    const another = await place.mount(gateway, { name: "another" });
    expect(await readTree(place, another.dir)).toEqual(left);
  });
}

describe("on a mount", () => onMount(["--allow-other"]));

const whyNot = whyNoOrdinaryUser();
const why = whyNot === undefined ? "" : ` (${whyNot})`;
describe.skipIf(whyNot !== undefined)(`on the mount of an ordinary user${why}`, () =>
  onMount([], () => becomeOrdinaryUser("")),
);
