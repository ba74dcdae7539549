/** The commands of history: they show a workspace's present and past, and bring nodes back. See options.ts. */
import type { Command } from "./command.ts";

/** A path lies in a mount, or in the workspace of --workspace. */
const WHERE = ["env", "in-workspace"] as const;
const OUTPUT = ["json", "debug"] as const;
const PATH_NOTE = "A path is one in a mount, or with --workspace one of a workspace without a mount.";
const FILE_NOTE =
  "FILE is a path in a mount, or with --workspace one of a workspace. @V behind it is a version: its number (@3), @-1 for the one before the newest, or the one of a moment (@2h, @2026-11-27). If a file has exactly such a name, it means that file: name the version with --version then.";
const WAIT_NOTE = "Changes that the mount has not uploaded yet are uploaded first.";

export const HISTORY_COMMANDS = {
  list: {
    dir: "none",
    optional: ["PATH"],
    summary: "List a folder of a workspace: as it is, as it was, or what was deleted from it",
    notes: [PATH_NOTE, "Without PATH it is the current folder, or with --workspace the whole workspace."],
    flags: [...WHERE, "recursive", "at-time", "deleted", "limit", ...OUTPUT],
    examples: [
      ["wsfs list ~/work/docs", "as the gateway has it, without changes that the mount has not uploaded yet"],
      ["wsfs list ~/work --at yesterday --recursive --limit 0", "the tree as it was"],
      ["wsfs list ~/work/docs --deleted", "deleted files and folders that can be restored, the last first"],
    ],
  },
  versions: {
    dir: "none",
    positionals: ["FILE"],
    summary: "List the versions of a file, newest first",
    notes: [PATH_NOTE],
    flags: [...WHERE, "limit", ...OUTPUT],
    examples: [
      ["wsfs versions ~/work/notes.txt", "number, time, size, author, and mount or execution"],
      ["wsfs versions --workspace main /notes.txt --limit 0 --json", "all of them, a line of JSON for each"],
    ],
  },
  diff: {
    dir: "none",
    positionals: ["FILE"],
    optional: ["OTHER"],
    summary: "Compare two versions, line by line where they are text",
    notes: [
      FILE_NOTE,
      "One FILE@V is compared with the newest version of the file. For FILE without @V, the two newest versions are compared. On a terminal the pager of $PAGER shows it.",
    ],
    flags: [...WHERE, ...OUTPUT],
    examples: [
      ["wsfs diff ~/work/notes.txt", "what the last save changed"],
      ["wsfs diff ~/work/notes.txt@yesterday", "what has changed since then"],
      ["wsfs diff ~/work/notes.txt@3 ~/work/notes.txt@5", "of any two versions, also of two files"],
    ],
  },
  restore: {
    dir: "none",
    positionals: ["FILE"],
    summary: "Bring back an earlier version of a file, or a folder as it was at a moment; no version is lost",
    notes: [
      FILE_NOTE,
      "With --at FILE may be a folder: it and all below it go back to that moment. Newer files and folders stay, unless --exact is given. The command shows a plan first, and carries it out with --yes, or when you agree on a terminal.",
      WAIT_NOTE,
    ],
    flags: [...WHERE, "file-version", "at-time", "exact", "yes", "settle-timeout", ...OUTPUT],
    examples: [
      ["wsfs restore ~/work/docs --at yesterday", "shows what would be done, and asks"],
      ["wsfs restore ~/work/docs --at '2026-11-27 10:22' --exact --yes", "also deletes newer files and folders"],
      ["wsfs restore ~/work/notes.txt@3", "version 3 once more, as the newest version"],
      ["wsfs restore ~/work/notes.txt@-1", "the version before the newest"],
    ],
  },
  undelete: {
    dir: "none",
    positionals: ["PATH"],
    summary: "Bring back a deleted file with its versions, or a folder with all that was deleted with it",
    notes: [
      PATH_NOTE,
      "Of several deleted files with the path, the last one comes back. A folder comes back with all that the same mount or program deleted from it just before, without a pause. A command that was broken off goes on when it is run again.",
      WAIT_NOTE,
    ],
    flags: [...WHERE, "as-name", "settle-timeout", ...OUTPUT],
    examples: [
      ["wsfs undelete ~/work/docs", "after rm -rf ~/work/docs"],
      ["wsfs undelete ~/work/notes.txt --as notes-old.txt", "where there is a new notes.txt"],
    ],
  },
  log: {
    dir: "none",
    optional: ["PATH"],
    summary: "Show the changes, newest first: when, by whom, from which mount or execution",
    notes: [
      PATH_NOTE,
      "For a file it shows all changes, in whatever folder the file was; for a folder the changes in it. Without PATH it is the current folder, or with --workspace the whole workspace.",
    ],
    flags: [...WHERE, "since", "by", "follow-journal", "limit", ...OUTPUT],
    examples: [
      ["wsfs log ~/work --since 2h", ""],
      ["wsfs log ~/work/notes.txt", "all changes of the file"],
      ["wsfs log ~/work --by ada --follow", "new changes too, until Ctrl-C"],
      ["wsfs log --workspace main --by laptop:/home/ada/work", "the changes made in that mount"],
    ],
  },
  undo: {
    dir: "none",
    optional: ["PATH"],
    summary: "Undo the changes of a mount, except where others have changed the same files since",
    notes: [
      "PATH is a path in the mount: the last changes at it and below it are undone. Without PATH it is the current folder. Without --since and --last these are the last run of changes, with less than a minute between one and the next; after an undo, that undo is taken back.",
      "Deleted files come back with their versions, moved ones go back, contents and attributes become what they were, new files are deleted. Files that others have changed since are skipped, and named. The command shows a plan first, and carries it out with --yes, or when you agree on a terminal. A command that was broken off goes on when it is run again.",
      WAIT_NOTE,
    ],
    flags: [...WHERE, "of-mount", "since", "last", "yes", "settle-timeout", ...OUTPUT],
    examples: [
      ["wsfs undo ~/work", "after rm -rf ~/work/docs: shows a plan, and asks"],
      ["wsfs undo ~/work --last 1 --yes", "the last change only"],
      ["wsfs undo ~/work/docs --since 1h", "the changes in one folder"],
    ],
  },
} as const satisfies Record<string, Command>;
