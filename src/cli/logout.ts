/** `wsfs logout`: ends the saved login at the gateway, then removes it here. */
import { forbidCore } from "../lib/core-file.ts";
import { chooseEnvironment } from "./environments.ts";
import { EXIT, Failure, lineOf } from "./failure.ts";
import type { Values } from "./options.ts";

export async function logout(values: Values<"logout">): Promise<number> {
  forbidCore();
  const { name, loginFile } = chooseEnvironment(values.env);
  const { endLogin } = await import("../client/index.ts");
  let wasThere: boolean;
  try {
    wasThere = await endLogin(loginFile, { isForced: values.force });
  } catch (cause) {
    const how = '"wsfs logout --force" removes the login here all the same; the gateway ends it when it is not used';
    throw new Failure(`${lineOf(cause)}; the login was not ended: ${how}`, EXIT.failure, { cause });
  }
  process.stdout.write(wasThere ? `Signed out of ${name}\n` : `Not signed in to ${name}\n`);
  return EXIT.ok;
}
