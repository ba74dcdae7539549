/** What a person needs to sign in to a gateway: an account of it, and an environment. */
import { check, type Place, type TestGateway } from "../../support/wsfs.ts";

/** Makes the account ada, and the environment team. Answers its password. */
export async function makeAccount(place: Place, { baseUrl, data, workspace }: TestGateway): Promise<string> {
  const user = ["ada", "--data", data];
  const password = check(await place.wsfs(["gateway", "user", "add", ...user, "--generate"])).stdout.trim();
  check(await place.wsfs(["gateway", "grant", "set", ...user, "--workspace", workspace, "--role", "editor"]));
  check(await place.wsfs(["env", "add", "team", "--base-url", baseUrl]));
  return password;
}
