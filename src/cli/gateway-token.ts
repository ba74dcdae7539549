/** `wsfs gateway token`: prints an access token for a local gateway, whether it runs or not. */
import { statSync } from "node:fs";
import { forbidCore } from "../lib/core-file.ts";
import { EXIT, Failure } from "./failure.ts";
import type { Values } from "./options.ts";
import { absolute } from "./working-folder.ts";

export async function gatewayToken(values: Values<"gateway token">): Promise<number> {
  forbidCore();
  const data = absolute(values.data);
  if (statSync(data, { throwIfNoEntry: false })?.isDirectory() !== true) {
    throw new Failure(
      `--data: ${values.data} is no folder of a gateway; "wsfs gateway --data ${values.data}" makes one`,
    );
  }
  const { issueToken, revokeAll } = await import("../gateway/start.ts");
  if (values["revoke-all"]) {
    revokeAll(data);
    process.stdout.write("All tokens and logins have ended\n");
    return EXIT.ok;
  }
  const token = await issueToken(data, {
    ...(values.workspace === undefined ? {} : { workspace: values.workspace }),
    ...(values.scope.length === 0 ? {} : { scopes: values.scope }),
    ttlSeconds: values.ttl,
  });
  process.stdout.write(`${token}\n`);
  return EXIT.ok;
}
