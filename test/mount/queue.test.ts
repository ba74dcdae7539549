/** `wsfs queue` and `wsfs queue retry`, as a user calls them: what waits, why, and that it is tried again. */
import { afterEach, beforeEach, expect, it } from "vitest";
import { until } from "../support/child.ts";
import { check, createPlace, type Place, type TestMount } from "../support/wsfs.ts";

let place: Place;
beforeEach(() => {
  place = createPlace();
});
afterEach(() => place.cleanUp());

const queue = async (mount: TestMount, ...args: string[]) =>
  check(await place.wsfs(["queue", mount.dir, ...args])).stdout;

/** Path and state of each item. */
async function items(mount: TestMount): Promise<string[]> {
  const lines = (await queue(mount, "--json")).trim().split("\n");
  const [first, ...rest] = lines.map((line) => JSON.parse(line) as Record<string, Record<string, unknown>>);
  expect(first?.sums?.dirty).toBe(rest.length);
  return rest.map(({ item }) => `${item?.path} ${item?.state}`);
}

it("says of a mount whose gateway is gone what waits, and has it delivered when it is back", async () => {
  const gateway = await place.gateway();
  const mount = await place.mount(gateway);
  expect(await queue(mount)).toBe("nothing waits to be uploaded\n");
  // Names are made where all names are known.
  check(await mount.sh("ls"));
  await gateway.stop();
  check(await mount.sh("mkdir d && echo 1 > d/a && echo 2 > b"));
  await until("it is known to be gone", async () => (await queue(mount)).includes("offline for "));
  const text = await queue(mount);
  expect(text).toMatch(/^4 changes, 4 B; oldest /);
  expect(text).toMatch(/^folder .* \/d: the gateway does not answer$/m);
  expect(text).toMatch(/^upload .* \/d\/a: its folder has to be sent first$/m);
  expect(await queue(mount, "--limit", "1")).toMatch(/^and 3 more; --limit 0 shows all$/m);
  expect(await items(mount)).toHaveLength(4);

  const unread = check(
    await place.sh(`"$NODE" "$WSFS" queue '${mount.dir}' --json | true; exit $PIPESTATUS`, {
      env: { NODE: process.execPath, WSFS: place.program },
    }),
  );
  expect(unread.stderr).toBe("");
  const { code, stderr } = await place.wsfs(["queue", "retry", mount.dir, "/none"]);
  expect([code, stderr]).toEqual([
    1,
    expect.stringMatching(/^wsfs: nothing waits to be uploaded at \/none; [^\n]*\n$/),
  ]);

  await place.gateway();
  expect(check(await place.wsfs(["queue", "retry", mount.dir])).stdout).toBe("4 changes tried now\n");
  check(await place.wsfs(["drain", mount.dir]));
  expect(await items(mount)).toEqual([]);
});

it("keeps what is refused, says why, and sends it when it is told to try again", async () => {
  const small = await place.gateway({ args: ["--max-upload", "1000"] });
  const mount = await place.mount(small);
  check(await mount.sh("head -c 5000 /dev/zero > large && echo 1 > small"));
  const drained = await place.wsfs(["drain", mount.dir]);
  expect([drained.code, drained.stderr]).toEqual([1, expect.stringContaining("/large")]);
  expect(await items(mount)).toEqual(["/large parked"]);
  expect(await queue(mount)).toMatch(/^upload .* \/large: refused: .*1000/m);
  expect(check(await mount.sh("wc -c < large")).stdout.trim()).toBe("5000");

  await small.stop();
  await place.gateway();
  check(await place.wsfs(["queue", "retry", mount.dir, "/large"]));
  check(await place.wsfs(["drain", mount.dir]));
  expect(await items(mount)).toEqual([]);
});
