/** docs/user/fuse-native.md's table: what a mount by fuse-native cannot do, and what shows it. */

export interface Limit {
  readonly what: string;
  readonly instead: string;
  /** Behaviour cases that fail for it; all others hold. */
  readonly cases?: readonly string[];
  /** Those that fail where it takes them at the wrong moment. */
  readonly sometimes?: readonly string[];
  /** A script that does not fail on the mount where this is so; it is Python with the preamble of the cases. */
  readonly script?: string;
  /** The name of a test of fuse-native.test.ts. */
  readonly test?: string;
}

export const LIMITS: readonly Limit[] = [
  {
    what: "a daemon that dies is replaced",
    instead: "the mount ends, and programs that use it get ENOTCONN; unsent changes go on with the next mount",
    test: "a daemon that dies ends the mount, and the next one has what was written",
  },
  {
    what: "`wsfs reload`",
    instead: "refused: unmount, and mount again",
    test: "reload is refused, and says why",
  },
  {
    what: "the user who makes a file owns it, and chown counts (`--owners real`)",
    instead: "refused: all files are the mounting user's",
    test: "real owners are refused, and why is said",
  },
  {
    what: "remote changes are shown at once, and nothing is asked for twice",
    instead:
      "names and attributes are asked for again after a second, content at the next open; an open file goes on in the new content; a program in a folder that moved elsewhere gets ENOENT",
    test: "what another mount changes shows within seconds, in open files too",
  },
  {
    what: "the kernel reads and writes local files by itself (passthrough)",
    instead: "all bytes go through the daemon, 128 KiB at a time",
    test: "status says what it is, and that there is no passthrough",
  },
  {
    what: "a signal ends the waiting for the gateway",
    instead: "the waiting ends at its limits; no call waits longer than that",
    test: "no call hangs on a gateway that is frozen, and umount works",
  },
  {
    what: "renameat2 with RENAME_NOREPLACE or RENAME_EXCHANGE",
    instead: "EINVAL",
    cases: [
      "rename/NOREPLACE refuses a taken name, takes a free one",
      "rename/EXCHANGE changes two names, of whatever kind",
      "folders/a folder has a link for its name, its own, and one of each folder in it",
    ],
  },
  {
    what: "rename over a file that a program has open, in one step",
    instead: "the file is removed, then the other one takes its name: there is a moment without it",
    sometimes: ["together/50 processes save one file over: it always has one whole content"],
    script: `
import threading
missed = []
def save(i):
    for k in range(500):
        if missed: return
        put(f"t{i}"); os.rename(f"t{i}", "over")
        if code(get, "over") == "ENOENT": missed.append(i)
threads = [threading.Thread(target=save, args=(i,)) for i in range(20)]
for thread in threads: thread.start()
for thread in threads: thread.join()
equal(missed != [], True)
equal(os.path.exists("over"), True)`,
  },
  {
    what: "times to the nanosecond, and before 1970",
    instead: "milliseconds, and 1970",
    cases: [
      "removing/a file is made, removed, and only then written",
      "links/a symlink has a time of its own",
      "attributes/times are kept to the nanosecond, before 1970 and after 2038 too",
      "attributes/times that ext4 cannot hold are the last, or the first, that it can",
      "attributes/touch -d, touch -r, touch alone",
      "attributes/a time set while the file is open for writing stays after close",
    ],
  },
  {
    what: "one of a file's two times set alone (`touch -m`, tar)",
    instead: "libfuse leaves both as they are, without an error",
    cases: ["attributes/one time can be set and the other left, or set to now"],
  },
  {
    what: "names of one file (hard links) are one file at once",
    instead: "to the kernel each is a file of its own: a change by one name shows by the other after a second",
    sometimes: [
      "links/a hard link is the same file: content, attributes, number, count",
      "links/an open file sees what comes by its other name",
      "links/a hard link to a symlink, and to a named pipe",
    ],
    script: `
def is_late(n):
    a, b = f"link-a{n}", f"link-b{n}"
    put(a); os.link(a, b); os.stat(b); put(a, b"more")
    return get(b) == b""
equal(True in (is_late(n) for n in range(100)), True)
os.stat("link-b0"); put("link-a0", b"longer"); time.sleep(1.5)
equal(get("link-b0"), b"longer")`,
  },
  {
    what: "a removed folder is listed as empty by a program that has it open",
    instead: "ENOENT",
    cases: [
      "removing/a folder one stands in is removed: it is empty and takes nothing new",
      "removing/a folder's handle outlives its removal",
    ],
  },
  {
    what: "a folder can be removed though a file that was removed in it is still open",
    instead: "ENOTEMPTY until that is closed",
    script: `
os.mkdir("d"); fd = os.open("d/f", os.O_CREAT | os.O_RDWR); os.unlink("d/f")
equal(os.listdir("d"), [])
os.write(fd, b"kept"); equal(os.pread(fd, 9, 0), b"kept")
equal(code(os.rmdir, "d"), "ENOTEMPTY")
os.close(fd)
for _ in range(1000):
    if code(os.rmdir, "d") == "none": break
    time.sleep(0.01)
equal(os.path.exists("d"), False)`,
  },
  {
    what: "a listing that is under way shows changes made meanwhile, seekdir comes back to its place",
    instead: "the listing is as the folder was when it was begun",
    cases: ["folders/telldir and seekdir come back to the same place, also after changes"],
  },
  {
    what: "a name may hold U+FFFD",
    instead: "EILSEQ for every call on it: the package gives this for bytes that are not UTF-8, whichever they were",
    script: String.raw`
for name in ("a\ufffd", b"a\xff"):
    for action in (os.lstat, os.unlink, os.rmdir, os.mkdir, open, lambda n: os.truncate(n, 0), lambda n: os.rename(n, "other")):
        equal(code(action, name), "EILSEQ")
put("one"); equal(code(os.rename, "one", "b\ufffd"), "EILSEQ"); equal(code(os.link, "one", b"b\xff"), "EILSEQ")`,
  },
  {
    what: "fallocate, and holes found by lseek",
    instead: "EOPNOTSUPP; the whole file counts as data",
    script: `
fd = os.open("f", os.O_CREAT | os.O_RDWR)
equal(libc.fallocate(fd, 0, ctypes.c_long(0), ctypes.c_long(4096)), -1)
equal(ctypes.get_errno(), errno.EOPNOTSUPP)
os.ftruncate(fd, 1 << 20); os.pwrite(fd, b"end", 1 << 20)
equal(os.lseek(fd, 0, os.SEEK_DATA), 0)`,
  },
  {
    what: "pages the kernel has of a file stay through its next open",
    instead: "each open reads anew (within one open the pages are kept; mappings, shared ones too, work)",
    test: "what was read is read again after an open, and mappings see what is written",
  },
];

const START = "| with the own transport | by fuse-native |\n|---|---|\n";

export function limitsTable(): string {
  return `${START}${LIMITS.map(({ what, instead }) => `| ${what} | ${instead} |\n`).join("")}`;
}

/** The text with the table in place of the one it has. */
export function withTable(text: string): string {
  const from = text.indexOf(START);
  const to = text.indexOf("\n\n", from) + 1;
  return text.slice(0, from) + limitsTable() + text.slice(to);
}
