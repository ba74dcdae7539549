/** Listing folders, also while they change. */
import assert from "node:assert/strict";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Cases, NotHere, names, python, sh, stat } from "./case.ts";

/** opendir(3) and what belongs to it; `entry` gives the next name or None. */
const STREAM = `
class Dirent(ctypes.Structure):
    _fields_ = [("ino", ctypes.c_uint64), ("off", ctypes.c_int64), ("len", ctypes.c_ushort), ("type", ctypes.c_ubyte), ("name", ctypes.c_char * 256)]
libc.opendir.restype = ctypes.c_void_p
libc.readdir.restype = ctypes.POINTER(Dirent)
libc.readdir.argtypes = libc.closedir.argtypes = libc.rewinddir.argtypes = libc.telldir.argtypes = [ctypes.c_void_p]
libc.telldir.restype = ctypes.c_long
libc.seekdir.argtypes = [ctypes.c_void_p, ctypes.c_long]
def entry(stream):
    found = libc.readdir(stream)
    return found.contents.name.decode() if found else None
def rest(stream):
    return list(iter(lambda: entry(stream), None))
`;

export const folderCases: Cases = {
  "800 entries are all listed, once, each with its kind"(dir) {
    for (let i = 0; i < 760; i++) writeFileSync(join(dir, `file-${i}`), "");
    for (let i = 0; i < 40; i++) mkdirSync(join(dir, `folder-${i}`));
    const entries = readdirSync(dir, { withFileTypes: true });
    assert.equal(entries.length, 800);
    assert.equal(new Set(entries.map(({ name }) => name)).size, 800);
    for (const entry of entries) assert.equal(entry.isDirectory(), entry.name.startsWith("folder"));
    assert.equal(sh(dir, "ls -l | wc -l"), "801\n");
    sh(dir, "rm -rf ./*");
    assert.deepEqual(names(dir), []);
  },

  "a folder lists itself and its parent, with the numbers stat gives"(dir) {
    mkdirSync(join(dir, "d"));
    const [here, above] = sh(dir, "ls -fi d | awk '{ print $1 }' | sort -n | xargs")
      .trim()
      .split(" ")
      .map(BigInt)
      .sort();
    const expected = [stat(dir, "d").ino, stat(dir).ino].sort();
    assert.deepEqual([here, above], expected);
  },

  "the numbers of a listing are those of stat"(dir) {
    python(
      dir,
      `
for i in range(50): put(f"f{i}")
os.mkdir("d"); os.symlink("f1", "l")
for found in os.scandir("."): equal(found.inode(), os.lstat(found.name).st_ino)
`,
    );
  },

  "while others are removed and made, each name that stays is listed exactly once"(dir) {
    python(
      dir,
      `${STREAM}
for i in range(300):
    put(f"stays-{i}"); put(f"goes-{i}")
stream = libc.opendir(b".")
seen, made, going = [], 0, 0
while (name := entry(stream)) is not None:
    seen.append(name)
    if len(seen) % 2 == 0 and going < 300:
        os.unlink(f"goes-{going}"); going += 1
    if len(seen) % 3 == 0 and made < 150:
        put(f"new-{made}"); made += 1
libc.closedir(stream)
equal(sorted(n for n in seen if n.startswith("stays")), sorted(f"stays-{i}" for i in range(300)))
equal(len(seen), len(set(seen)))
`,
    );
  },

  "a loop that removes what it lists empties the folder in one go"(dir) {
    python(
      dir,
      `${STREAM}
for i in range(400): put(f"f{i}")
stream = libc.opendir(b".")
while (name := entry(stream)) is not None:
    if name not in (".", ".."): os.unlink(name)
libc.closedir(stream)
equal(os.listdir("."), [])
`,
    );
  },

  "telldir and seekdir come back to the same place, also after changes"(dir) {
    python(
      dir,
      `${STREAM}
for i in range(300): put(f"f{i:03}")
stream = libc.opendir(b".")
head = [entry(stream) for _ in range(100)]
place = libc.telldir(stream)
tail = rest(stream)
equal(len(head) + len(tail), 302)
libc.seekdir(stream, place)
equal(rest(stream), tail)
for name in head[2:50]:
    if name.startswith("f"): os.unlink(name)
os.unlink(tail[0])
libc.seekdir(stream, place)
equal(rest(stream), tail[1:])
libc.rewinddir(stream)
equal(len(rest(stream)), len(os.listdir(".")) + 2)
libc.closedir(stream)
`,
    );
  },

  "a listing opened anew shows what has just changed"(dir) {
    python(
      dir,
      `
for i in range(60):
    put(f"f{i}")
    equal(len(os.listdir(".")), i + 1)
for i in range(60):
    os.rename(f"f{i}", f"g{i}")
    equal(sorted(os.listdir(".")), sorted([f"g{k}" for k in range(i + 1)] + [f"f{k}" for k in range(i + 1, 60)]))
`,
    );
  },

  "a folder has a link for its name, its own, and one of each folder in it"(dir) {
    python(
      dir,
      `
os.makedirs("d/a/x"); os.mkdir("e"); put("d/file"); os.symlink("a", "d/link")
if os.stat("d/a/x").st_nlink == 1: not_here("this disk does not count folders")
links = lambda: [os.stat(name).st_nlink for name in (".", "d", "e")]
equal(links(), [4, 3, 2])
os.mkdir("d/b"); os.mkdir("d/c"); equal(links(), [4, 5, 2])
os.rmdir("d/c"); equal(links(), [4, 4, 2])
os.rename("d/a", "e/a"); equal(links(), [4, 3, 3])
os.rename("d/file", "e/file"); equal(links(), [4, 3, 3])
renameat2("d/b", "e/file", EXCHANGE); equal(links(), [4, 2, 4])
os.mkdir("d/b2"); os.rename("d/b2", "e/file"); equal(links(), [4, 2, 4])
os.rename("e/a", "e/z"); equal(links(), [4, 2, 4])
os.rename("e", "d/e"); equal((os.stat(".").st_nlink, os.stat("d").st_nlink), (3, 3))
open_folder = os.open("d/e/file", os.O_RDONLY); os.rmdir("d/e/file")
equal((os.fstat(open_folder).st_nlink, os.stat("d/e").st_nlink), (0, 3))
`,
    );
  },

  "a folder's mtime moves with its entries"(dir) {
    python(
      dir,
      `
os.mkdir("d")
def moves(action):
    os.utime("d", ns=(10**18, 10**18))
    equal(os.stat("d").st_mtime_ns, 10**18)
    action()
    assert os.stat("d").st_mtime_ns > 10**18, "mtime as before"
moves(lambda: put("d/a"))
moves(lambda: os.rename("d/a", "d/b"))
moves(lambda: os.link("d/b", "d/c"))
moves(lambda: os.unlink("d/b"))
moves(lambda: os.mkdir("d/e"))
moves(lambda: os.rmdir("d/e"))
os.utime("d", ns=(10**18, 10**18))
put("d/c", "content"); os.chmod("d/c", 0o600)
equal(os.stat("d").st_mtime_ns, 10**18)
`,
    );
  },

  "a folder's size is 4096, however much is in it"(dir) {
    mkdirSync(join(dir, "d"));
    if (stat(dir, "d").size !== 4096n) throw new NotHere("this disk counts otherwise");
    for (let i = 0; i < 100; i++) writeFileSync(join(dir, `d/${i}`), "content");
    assert.equal(stat(dir, "d").size, 4096n);
  },
};
