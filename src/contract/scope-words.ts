/** What each scope lets a program do, in words for the person who is asked for it. */
import type { Scope } from "./scopes.ts";

export const SCOPE_WORDS: Readonly<Record<Scope, string>> = {
  "account.workspace.read": "See which workspaces there are",
  "account.workspace.create": "Make workspaces",
  "account.grant.read": "See who may use a workspace",
  "account.grant.update": "Let others use a workspace, or no longer",
  "account.key.read": "See which API keys there are",
  "account.key.create": "Make API keys",
  "account.key.delete": "End API keys",
  "execution.execution.run": "List engines and run them",
  "execution.execution.read": "See what engines did, and their logs",
  "execution.execution.cancel": "End engines that run",
  "execution.trigger.read": "See what starts engines by itself",
  "execution.trigger.create": "Have engines start by themselves",
  "execution.trigger.update": "Change what starts engines by itself",
  "execution.trigger.delete": "Have engines no longer start by themselves",
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
