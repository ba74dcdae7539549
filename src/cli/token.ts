/** `wsfs token`: prints an access token of the saved login, for curl and scripts. */
import { chooseEnvironment } from "./environments.ts";
import { EXIT, Failure, lineOf } from "./failure.ts";
import type { Values } from "./options.ts";
import { signedIn } from "./signed-in.ts";

export async function token(values: Values<"token">): Promise<number> {
  const at = chooseEnvironment(values.env);
  const credentials = await signedIn(at, {
    ...(values.scope.length === 0 ? {} : { scopes: values.scope }),
    workspace: values.workspace,
  });
  try {
    process.stdout.write(`${await credentials.token()}\n`);
  } catch (cause) {
    throw new Failure(lineOf(cause), EXIT.failure, { cause });
  }
  return EXIT.ok;
}
