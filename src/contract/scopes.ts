/** The scopes of access tokens, named `<area>.<resource>.<action>` (gateway-spec §5; those of grants are our own). */
export const SCOPES = [
  "account.workspace.read",
  "account.grant.read",
  "account.grant.update",
  "execution.execution.run",
  "marketplace.install.create",
  "node.node.create",
  "node.node.update",
  "node.node.read-all",
  "node.file.read",
  "node.file.delete",
  "node.journal.create",
] as const;

export type Scope = (typeof SCOPES)[number];

/** An upload is authorized for everything it may do: the file, its parents, its journal entries (gateway-spec §4). */
export const UPLOAD_SCOPES = [
  "node.node.create",
  "node.file.read",
  "node.node.update",
  "node.journal.create",
] as const satisfies readonly Scope[];

export function isScope(text: string): text is Scope {
  return (SCOPES as readonly string[]).includes(text);
}
