/** Children that cannot be started, as no descriptor is left for their pipes. */
import { expect, test } from "vitest";
import { runWithoutDescriptors, sourceFile } from "../support/without-descriptors.ts";

test("nothing is signalled for a child that could not be started", async () => {
  const end = await runWithoutDescriptors(`
    import { execFile, spawn } from "node:child_process";
    import { safeToKill } from "${sourceFile("lib/safe-to-kill.ts")}";
    useUp();
    const abort = new AbortController();
    const children = [
      spawn("true"),
      spawn("true", { timeout: 1, killSignal: "SIGKILL" }),
      spawn("true", { signal: abort.signal, killSignal: "SIGKILL" }),
      execFile("true", { signal: abort.signal, killSignal: "SIGKILL" }, () => {}),
    ];
    for (const child of children) safeToKill(child).on("error", ({ code }) => console.log(code));
    console.log(children[0].kill("SIGKILL"));
    setTimeout(() => {
      abort.abort();
      console.log("alive");
    }, 20);
  `);
  const said = ["false", "EMFILE", "EMFILE", "EMFILE", "EMFILE", "alive"];
  expect(end).toEqual({ said, code: 0, signal: null });
});
