/** The least that a mount is for: what was written is there after the daemon has died, and with the next mount. */
import { expect } from "vitest";
import { until } from "../../support/child.ts";
import { check, type Place } from "../../support/wsfs.ts";

export async function isThereAgain(place: Place): Promise<void> {
  const gateway = await place.gateway();
  const first = await place.mount(gateway);
  check(await first.sh("mkdir a && echo one > a/b && sync a/b && echo two >> a/b && cat a/b"));
  process.kill(first.pid, "SIGKILL");
  expect(check(await first.sh("cat a/b && mv a/b a/c && echo three >> a/c && cat a/c")).stdout).toBe(
    "one\ntwo\none\ntwo\nthree\n",
  );
  await until("another daemon serves it", async () => (await first.status()).pid !== first.pid);
  // Told to end before it is uploaded: the next mount goes on with it.
  await first.umount();
  const second = await place.mount(gateway);
  expect(check(await second.sh("cat a/c && ls a")).stdout).toBe("one\ntwo\nthree\nc\n");
  await second.umount("--drain");
  const answer = await fetch(`${gateway.baseUrl}/v1/files/a/c`, {
    headers: { authorization: `Bearer ${gateway.token}` },
  });
  expect([answer.status, await answer.json()]).toEqual([200, expect.objectContaining({ name: "c", kind: "file" })]);
}
