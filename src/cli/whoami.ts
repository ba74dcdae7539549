/** `wsfs whoami`: shows the account of the saved login, and its rights in each workspace. */
import { chooseEnvironment } from "./environments.ts";
import { EXIT, Failure, lineOf } from "./failure.ts";
import type { Values } from "./options.ts";
import { signedIn } from "./signed-in.ts";
import { showTime } from "./table.ts";
import { printable } from "./wording.ts";

export async function whoami(values: Values<"whoami">): Promise<number> {
  const at = chooseEnvironment(values.env);
  const { connect, describeLogin } = await import("../client/index.ts");
  const gateway = connect({ baseUrl: at.baseUrl, credentials: await signedIn(at) });
  try {
    const { account, scopes, workspaces, workspace, expiresAt } = await gateway.account.get();
    const { signedInAt, store } = (await describeLogin(at.loginFile)) ?? {};
    if (values.json) {
      const { name: environment, baseUrl } = at;
      const all = {
        environment,
        baseUrl,
        account,
        scopes,
        workspaces,
        workspace,
        signedInAt,
        store,
        tokenExpiresAt: expiresAt,
      };
      process.stdout.write(`${JSON.stringify(all)}\n`);
      return EXIT.ok;
    }
    const places = workspaces.map(({ name, role }) => `${printable(name)} (${role})`);
    const rows: readonly (readonly [string, string])[] = [
      ["account", account === null ? "none" : account.name],
      ["environment", `${at.name} (${at.baseUrl})`],
      ["signed in", showTime(signedInAt ?? null)],
      ["kept in", store === "keyring" ? "the system keyring" : at.loginFile],
      ["ends", "90 days after its last use, or with wsfs logout"],
      ["workspaces", places.length === 0 ? "none" : places.join(", ")],
      ["scopes", scopes.join(" ")],
    ];
    process.stdout.write(rows.map(([name, value]) => `${name.padEnd(12)} ${value}\n`).join(""));
    return EXIT.ok;
  } catch (cause) {
    throw new Failure(lineOf(cause), EXIT.failure, { cause });
  } finally {
    await gateway.close();
  }
}
