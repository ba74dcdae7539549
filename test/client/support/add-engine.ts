/** An engine of a real gateway, as its owner adds it: a script of sh. */
import { openAccounts } from "../../../src/gateway/accounts/index.ts";
import { systemClock } from "../../../src/lib/system-clock.ts";

export function addEngine(
  dataDir: string,
  name: string,
  script: string,
  timeLimitSeconds = 60,
  scopes: readonly string[] = [],
): void {
  const accounts = openAccounts(dataDir, systemClock);
  const command = ["sh", "-c", script];
  accounts.engines.add({ name, description: "", command, timeLimitSeconds, scopes, inputSchema: null });
  accounts.close();
}
