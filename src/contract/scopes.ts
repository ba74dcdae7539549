/**
 * The scopes of access tokens, named `<area>.<resource>.<action>` (gateway-spec §5; those it does not name are our
 * own).
 */
export const SCOPES = [
  "account.workspace.read",
  "account.workspace.create",
  "account.grant.read",
  "account.grant.update",
  "account.key.read",
  "account.key.create",
  "account.key.delete",
  "execution.execution.run",
  "execution.execution.read",
  "execution.execution.cancel",
  "execution.trigger.read",
  "execution.trigger.create",
  "execution.trigger.update",
  "execution.trigger.delete",
  "marketplace.install.read",
  "marketplace.install.create",
  "marketplace.install.delete",
  "node.node.create",
  "node.node.update",
  "node.node.read-all",
  "node.file.read",
  "node.file.delete",
  "node.journal.create",
] as const;

/**
 * The scopes that API keys and engines may have. They cannot make keys, so that no key outlives the one that made it.
 */
export const KEY_SCOPES = SCOPES.filter((scope) => scope !== "account.key.create");

export type Scope = (typeof SCOPES)[number];

/**
 * An upload needs permission for everything that it may do: the file, its parents, its journal entries (gateway-spec
 * §4).
 */
export const UPLOAD_SCOPES = [
  "node.node.create",
  "node.file.read",
  "node.node.update",
  "node.journal.create",
] as const satisfies readonly Scope[];

export function isScope(text: string): text is Scope {
  return (SCOPES as readonly string[]).includes(text);
}
