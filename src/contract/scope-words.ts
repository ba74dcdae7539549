/** The rights that each scope gives a program, in words for the person who approves it. */
import type { Scope } from "./scopes.ts";

export const SCOPE_WORDS: Readonly<Record<Scope, string>> = {
  "account.workspace.read": "See which workspaces there are",
  "account.workspace.create": "Make workspaces",
  "account.grant.read": "See who may use a workspace",
  "account.grant.update": "Give others roles in a workspace, and take them",
  "account.key.read": "See which API keys there are",
  "account.key.create": "Make API keys",
  "account.key.delete": "End API keys",
  "execution.execution.run": "List engines and run them",
  "execution.execution.read": "See what engines did, and their logs",
  "execution.execution.cancel": "End engines that run",
  "execution.trigger.read": "See triggers, which start engines by themselves",
  "execution.trigger.create": "Make triggers",
  "execution.trigger.update": "Change triggers, and switch them on or off",
  "execution.trigger.delete": "Remove triggers",
  "marketplace.install.read": "See which engines are installed",
  "marketplace.install.create": "Install engines in a workspace",
  "marketplace.install.delete": "Remove engines from a workspace",
  "node.node.create": "Create files and folders",
  "node.node.update": "Change, move and rename files and folders",
  "node.node.read-all": "List folders and see what changes",
  "node.file.read": "Read files and their versions",
  "node.file.delete": "Delete files and folders",
  "node.journal.create": "Write to the journal",
};
