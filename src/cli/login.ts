/** `wsfs login`: signs this user in with a code that is approved in any browser, and saves the login. */
import { spawn } from "node:child_process";
import { forbidCore } from "../lib/core-file.ts";
import { chooseEnvironment } from "./environments.ts";
import { EXIT, Failure } from "./failure.ts";
import type { Values } from "./options.ts";
import { formatDuration } from "./wording.ts";

export async function login(values: Values<"login">): Promise<number> {
  forbidCore();
  const { name, baseUrl, entry, loginFile } = chooseEnvironment(values.env);
  const { checkStore, deviceLogin, RemoteError, saveLogin } = await import("../client/index.ts");
  const stop = new AbortController();
  process.once("SIGINT", () => stop.abort());
  const tell = (line: string) => process.stderr.write(`${line}\n`);
  const { store } = values;
  try {
    await checkStore(loginFile, { store });
    const made = await deviceLogin({
      baseUrl,
      issuer: entry.issuer,
      ...(values.scope.length === 0 ? {} : { scopes: values.scope }),
      signal: stop.signal,
      onEvent(event) {
        if (event.is !== "code") return;
        const { address, completeAddress, userCode, expiresAt } = event;
        if (values.json)
          process.stdout.write(`${JSON.stringify({ code: { address, completeAddress, userCode, expiresAt } })}\n`);
        tell(`Open this page and approve the code ${userCode}:`);
        tell(`  ${completeAddress}`);
        tell(`Waiting, for ${formatDuration(expiresAt - Date.now())} at most; Ctrl-C gives up.`);
        if (!values["no-browser"]) openPage(completeAddress);
      },
    });
    await saveLogin(loginFile, made, { store });
    const account = made.account?.name ?? "an account without a name";
    if (values.json) process.stdout.write(`${JSON.stringify({ account: made.account, environment: name, baseUrl })}\n`);
    else process.stdout.write(`Signed in to ${name} (${baseUrl}) as ${account}\n`);
    return EXIT.ok;
  } catch (error) {
    if (stop.signal.aborted) throw new Failure("given up: not signed in");
    if (!(error instanceof RemoteError)) throw error;
    throw new Failure(error.code === "forbidden" ? "the sign-in was denied" : error.message, EXIT.failure, {
      cause: error,
    });
  }
}

/** Opens the page if there is a desktop. The address is printed in any case. */
function openPage(address: string): void {
  if (!process.stderr.isTTY || (process.env.DISPLAY ?? process.env.WAYLAND_DISPLAY) === undefined) return;
  const child = spawn("xdg-open", [address], { stdio: "ignore", detached: true });
  child.on("error", () => {});
  child.unref();
}
