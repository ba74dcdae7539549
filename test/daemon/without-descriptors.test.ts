/** What a daemon starts as a process of its own, when no descriptor is left for it: the daemon goes on. */
import { expect, test } from "vitest";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { runWithoutDescriptors, sourceFile } from "../support/without-descriptors.ts";

const CLOCK = `import { systemClock } from "${sourceFile("lib/system-clock.ts")}";`;

/** Later than the event with which a child reports that it was not started. */
const SAYS_ALIVE = `setTimeout(() => {
  console.log("alive");
  process.exit();
}, 20);`;

test("the process that replays remote changes", async () => {
  const end = await runWithoutDescriptors(`
    ${CLOCK}
    import { SILENT } from "${sourceFile("lib/log.ts")}";
    import { startReplayer } from "${sourceFile("daemon/replayer.ts")}";
    const replays = { formerly: new Set(), onAny: (begin) => begin?.(), drop() {}, isAny: false };
    const warn = ({ err }) => {
      console.log(err.message);
      ${SAYS_ALIVE}
    };
    const log = { ...SILENT, warn };
    startReplayer({ mountpoint: "/none", connection: 1, replays, former: [], keep() {}, clock: systemClock, log });
    useUp();
  `);
  expect(end).toEqual({ said: ["wsfs-replayer could not be started", "alive"], code: 0, signal: null });
});

test("getent, and the mount ends afterwards", async () => {
  const end = await runWithoutDescriptors(`
    ${CLOCK}
    import { createFind } from "${sourceFile("daemon/accounts.ts")}";
    const find = createFind(systemClock.elapsed);
    useUp();
    const ended = new AbortController();
    await find("user", "name", "ada", ended.signal).catch(({ code }) => console.log(code));
    ended.abort();
    ${SAYS_ALIVE}
  `);
  expect(end).toEqual({ said: ["EMFILE", "alive"], code: 0, signal: null });
});

test("a gateway that has died", async () => {
  const folder = await temporaryFolder();
  // One for the gateway's log.
  const end = await runWithoutDescriptors(`
    import { startGatewayOf } from "${sourceFile("daemon/start-gateway.ts")}";
    useUp(1);
    try {
      startGatewayOf("${folder}");
    } catch ({ message }) {
      console.log(message);
    }
    ${SAYS_ALIVE}
  `);
  expect(end).toEqual({ said: ["no process can be started for the gateway", "alive"], code: 0, signal: null });
});

test("the system keyring", async () => {
  const end = await runWithoutDescriptors(`
    import { systemKeyring } from "${sourceFile("client/keyring.ts")}";
    useUp();
    await systemKeyring().get("login").catch(({ message }) => console.log(message));
    ${SAYS_ALIVE}
  `);
  expect(end.said).toEqual([expect.stringMatching(/^the system keyring does not answer: spawn \S+ EMFILE$/), "alive"]);
  expect(end).toMatchObject({ code: 0, signal: null });
});
