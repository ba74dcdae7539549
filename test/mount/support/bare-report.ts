/** src/gateway/BARE.md: made of a run of the cases on a bare gateway, and read back for comparing. */

export interface BareRun {
  /** Case to the errno it ends in. */
  readonly refused: Readonly<Record<string, string>>;
  readonly total: number;
  /** What one can see of a name, and whether another mount shows the same. */
  readonly kept: Readonly<Record<string, boolean>>;
}

export function bareReport({ refused, kept }: BareRun): string {
  return `${HEAD}
${TABLE}
| seen through another mount | |
|---|---|
${Object.entries(kept)
  .map(([what, isKept]) => `| ${what} | ${isKept ? "the same" : "kept by the mount that made them, not sent"} |`)
  .join("\n")}

| behaviour case that needs what is not there | ends in |
|---|---|
${Object.entries(refused)
  .sort(([a], [b]) => (a < b ? -1 : 1))
  .map(([name, errno]) => `| ${name} | ${errno} |`)
  .join("\n")}

Every other case of test/mount/cases behaves as on a plain folder.
`;
}

/** The lines that a run decides. `isShown`: whether a case could be shown in this run. */
export function readReport(text: string, isShown: (name: string) => boolean): string[] {
  const rows = text.slice(text.indexOf(TABLE) + TABLE.length).split("\n");
  return rows.filter((row) => {
    const [, name = ""] = /^\| (.+) \| EPERM \|$/.exec(row) ?? [];
    return row.startsWith("|") && (name === "" || isShown(name));
  });
}

const HEAD = `# On a bare gateway

\`wsfs gateway --bare\` speaks only what gateway-spec.md shows (workspaces, upload by path, content by
id, pages) and the plainest list, node, folder, update, move and delete, in other words and paths than
ours; \`bare.profile.json\` tells a mount how. This is what the engine does about what is missing there,
and what it cannot do anything about. Each is a feature a profile can switch off alone.

| missing | instead | what cannot hold |
|---|---|---|
| \`journal\` | known folders are listed again, those programs looked into lately first, eight a second at most | a change elsewhere shows when its folder's turn comes, a deletion half a minute later, when its id has answered 404 all the while; nothing tells of folders nobody looked into |
| \`positions\` | the clock: a list is taken to be complete up to five minutes before it was asked for | a node deleted elsewhere within five minutes of our last write to it stays until they are over; \`drain\` waits for what was sent, not for the gateway's index |
| \`revisions\` | only a read by id is believed; a state our own write left is an echo for five minutes, then the node is read again | a change elsewhere that restores such a state shows after five minutes; a change between the look before a move or deletion and the request is not noticed |
| \`conditions\` | what they would say is read just before the request | two that write at the same moment: the later content is the head, the other one is an earlier version at the gateway and no conflict copy is made; a request that arrives long after it was given up undoes what came after it |
| \`uploadKeys\`, \`changeKeys\` | after a lost answer the gateway is read: by id, or by the name in the folder, contents compared by hash | the same content or folder made there by somebody else at that moment counts as ours; a deletion whose answer was lost counts as done when the journal tells of it, without a journal when its id has answered 404 for five minutes; of a birth that is refused after a lost answer, what shows up at its place within five minutes with the same content and attributes, or the same folder, counts as ours |
| \`exchanges\` | of two names that take each other's place one goes through a name nobody uses, as rings of more do everywhere; so it is without \`revisions\`, \`conditions\` or \`changeKeys\` too | a moment in which one of the two has a name that starts with \`.wsfs-moving-\` |
| \`lastKey\` | an upload is never given up for newer content, it goes on from a copy | a little more disk while a file is written and sent at the same time |
| \`hashes\` | what was sent is remembered; else the content is read and hashed where it decides something | a download cannot be checked; the same file made on two mounts is a conflict more often; hard links are refused (EPERM) |
| \`ranges\` | a file is read whole once and kept | the first byte of a large file comes after those before it |
| \`versions\` | a file is brought in whole before the first write to it, before it takes another's name, and before a reference to its content would be lost; one that is not here keeps its node when it is moved, and a name made again is a new node | a program that reads a file not yet here while somebody replaces or deletes it gets EIO, and what is there then when it opens it again; hard links are refused (EPERM) |
| \`references\` | the bytes are brought in and sent again | traffic |
| \`attributes\` | modes, times and extended attributes are kept by the mount that set them | links and special files are refused (EPERM) |
| \`snapshots\` | pages by number, as old as the oldest of them | a name that moves between pages while they are read may be seen a round later |
| \`names\` | the folder is listed | traffic |

`;
const TABLE = "## What a run shows\n";
