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

  // Before the gateway is back: that is noticed without being told, at any moment.
  expect(check(await place.wsfs(["queue", "retry", mount.dir])).stdout).toBe(
    "4 changes tried as soon as possible: the gateway does not answer\n",
  );
  await place.gateway();
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

it("tells how an upload goes, and leaves it going when nobody waits any more", async () => {
  const slow = await place.gateway({ args: ["--upload-speed", "100K"] });
  const mount = await place.mount(slow);
  // More than the buffers between the two hold.
  const size = 16_000_000;
  check(await mount.sh(`head -c ${size} /dev/zero > large`));
  const waiting = place.spawnWsfs(["drain", mount.dir, "--json"]);
  let [stdout, stderr] = ["", ""];
  waiting.stdout?.on("data", (chunk) => (stdout += String(chunk)));
  waiting.stderr?.on("data", (chunk) => (stderr += String(chunk)));
  const ended = new Promise((resolve) => waiting.on("close", (code, signal) => resolve(signal ?? code)));
  const lines = () => stdout.split("\n").slice(0, -1);
  const seen = () => lines().map((line) => (JSON.parse(line) as { progress: Record<string, number> }).progress);
  await until("it is under way", () => seen().some(({ bytesSent }) => (bytesSent ?? 0) > 0));

  for (const command of [
    ["drain", mount.dir, "--timeout", "0.1"],
    ["umount", mount.dir, "--drain=0.1"],
  ]) {
    const late = await place.wsfs(command);
    expect([late.code, late.stdout]).toEqual([1, ""]);
    expect(late.stderr).toMatch(/^wsfs: not drained: \/large: on its way\n/);
  }

  waiting.kill("SIGINT");
  expect(await ended).toBe("SIGINT");
  expect(stderr).toMatch(
    /^wsfs: no longer waiting; left to upload: 1 change(?: \([\d.]+ MiB\))?; \S+ stays mounted and goes on\n$/,
  );
  // What is handed over is not pending any more, and no line comes twice in a row.
  for (const { bytesSent = 0, bytesPending = 0 } of seen()) expect(bytesSent + bytesPending).toBeLessThanOrEqual(size);
  expect(lines().filter((line, index) => line === lines()[index - 1])).toEqual([]);
  expect(await items(mount)).toEqual(["/large sending"]);
});
