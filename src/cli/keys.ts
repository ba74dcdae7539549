/** `wsfs keys create|list|revoke`: API keys. */
import type { Gateway } from "../client/index.ts";
import { EXIT } from "./failure.ts";
import type { Values } from "./options.ts";
import { atGateway, printList, showAuthor } from "./service.ts";
import { showTime } from "./table.ts";

/** Only the key goes to standard output, all other text to standard error: for KEY=$(wsfs keys create …). */
export function keysCreate(values: Values<"keys create">): Promise<number> {
  const { "key-scope": scopes, json } = values;
  const expiresAt = values.expires === undefined ? undefined : new Date(Date.now() + values.expires * 1000);
  const create = async (gateway: Gateway) => {
    const made = await gateway.apiKeys.create(values.positionals.NAME, scopes, { expiresAt });
    process.stdout.write(json ? `${JSON.stringify(made)}\n` : `${made.key}\n`);
    const until = made.expiresAt === null ? "It does not expire" : `It expires ${showTime(made.expiresAt)}`;
    process.stderr.write(`Keep it now: it is not shown again. ${until}; wsfs keys revoke ${made.id} ends it.\n`);
    return EXIT.ok;
  };
  // A key may permit no more than the token that makes it.
  return atGateway(values, ["createApiKey"], create, scopes);
}

export async function keysList(values: Values<"keys list">): Promise<number> {
  await atGateway(values, ["listApiKeys"], (gateway) =>
    printList(gateway.apiKeys.list(), {
      json: values.json,
      heads: ["NAME", "OF", "CREATED", "EXPIRES", "LAST USED", "ID", "SCOPES"],
      row: (key) => [
        key.name,
        showAuthor({ account: key.account?.name ?? null }),
        showTime(key.createdAt),
        key.expiresAt === null ? "never" : showTime(key.expiresAt),
        // The gateway stores only the minute. With seconds, the use would seem to lie before a key that was made in
        // that minute.
        key.lastUsedAt === null ? "never" : showTime(key.lastUsedAt).slice(0, "2026-01-31 12:00".length),
        key.id,
        key.scopes.join(" "),
      ],
      none: "The workspace has no API key.",
    }),
  );
  return EXIT.ok;
}

export function keysRevoke(values: Values<"keys revoke">): Promise<number> {
  return atGateway({ env: values.env }, ["revokeApiKey"], async (gateway) => {
    await gateway.apiKeys.revoke(values.positionals.ID);
    process.stdout.write("The key is revoked.\n");
    return EXIT.ok;
  });
}
