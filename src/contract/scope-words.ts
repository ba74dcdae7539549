/** What each scope lets a program do, in words for the person who is asked for it. */
import type { Scope } from "./scopes.ts";

export const SCOPE_WORDS: Readonly<Record<Scope, string>> = {
  "account.workspace.read": "See which workspaces there are",
  "account.grant.read": "See who may use a workspace",
  "account.grant.update": "Let others use a workspace, or no longer",
  "execution.execution.run": "List engines and run them",
  "marketplace.install.create": "Install engines in a workspace",
  "node.node.create": "Create files and folders",
  "node.node.update": "Change, move and rename files and folders",
  "node.node.read-all": "List folders and see what changes",
  "node.file.read": "Read files and their versions",
  "node.file.delete": "Delete files and folders",
  "node.journal.create": "Write to the journal",
};
