/** A program that works in a folder until the disk goes away, and says what was promised to it. */

/**
 * `argv`: folder, log, seed, prefix of the names. The log has a line {"begin": [name, ...]} before
 * each operation and {"done": {name: sha256 | null}} once it has returned (for content: once close
 * has). All contents differ. Ends, without an error, at the first operation that fails.
 */
export const WORKER = `
import ctypes, hashlib, json, os, random, sys
folder, log, prefix = sys.argv[1], sys.argv[2], sys.argv[4]
chance = random.Random(sys.argv[3])
os.chdir(folder)
out = os.open(log, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
def say(line): os.write(out, (json.dumps(line) + "\\n").encode())
libc = ctypes.CDLL(None, use_errno=True)
def exchange(a, b):
    if libc.renameat2(-100, a.encode(), -100, b.encode(), 2) != 0: raise OSError(ctypes.get_errno(), "renameat2")
files, made = {}, 0
def content():
    global made
    made += 1
    size = chance.choice([0, 10, 3000, 70_000, 400_000])
    return f"{prefix} {made}\\n".encode() + chance.randbytes(size)
def write(name, synced, flags=os.O_CREAT | os.O_TRUNC):
    data = content()
    fd = os.open(name, flags | os.O_WRONLY, 0o644)
    for at in range(0, len(data), 100_000): os.write(fd, data[at:at + 100_000])
    if synced: os.fsync(fd)
    os.close(fd)
    return hashlib.sha256(data).hexdigest()
try:
    while True:
        kind = chance.choice(["new", "new", "new", "write", "save", "rename", "delete", "exchange", "relink"])
        if kind == "new" or len(files) < 4:
            name = f"{prefix}-{made}"
            say({"begin": [name]})
            files[name] = write(name, chance.random() < 0.2, os.O_CREAT | os.O_EXCL)
            say({"done": {name: files[name]}})
            continue
        name = chance.choice(list(files))
        if kind == "write":
            say({"begin": [name]})
            files[name] = write(name, False)
            say({"done": {name: files[name]}})
        elif kind == "save":
            temporary = f"{prefix}.tmp-{made}"
            say({"begin": [temporary, name]})
            data = write(temporary, False)
            say({"done": {temporary: data}})
            say({"begin": [temporary, name]})
            os.rename(temporary, name)
            files[name] = data
            say({"done": {temporary: None, name: data}})
        elif kind == "rename":
            new = f"{prefix}-moved-{made}-{name.rsplit('-', 1)[-1]}"
            if new in files: continue
            say({"begin": [name, new]})
            os.rename(name, new)
            files[new] = files.pop(name)
            say({"done": {name: None, new: files[new]}})
        elif kind == "exchange":
            other = chance.choice([each for each in files if each != name])
            say({"begin": [name, other]})
            exchange(name, other)
            files[name], files[other] = files[other], files[name]
            say({"done": {name: files[name], other: files[other]}})
        elif kind == "relink":
            new = f"{prefix}-linked-{made}-{name.rsplit('-', 1)[-1]}"
            if new in files: continue
            say({"begin": [new]})
            os.link(name, new)
            files[new] = files[name]
            say({"done": {new: files[new]}})
            say({"begin": [name]})
            os.unlink(name); del files[name]
            say({"done": {name: None}})
        else:
            say({"begin": [name]})
            os.unlink(name); del files[name]
            say({"done": {name: None}})
except OSError as error: print(error)
`;

export interface Promised {
  /** What a file's content must be; null: it must not be there. */
  readonly files: Map<string, string | null>;
  /** Names whose last operation nobody answered: anything may be there. */
  readonly open: Set<string>;
}

/** What a log says. */
export function promisedBy(log: string): Promised {
  const files = new Map<string, string | null>();
  const open = new Set<string>();
  // The worker may have been stopped within a line.
  for (const line of log.split("\n").slice(0, -1)) {
    const said = JSON.parse(line) as { begin?: string[]; done?: Record<string, string | null> };
    for (const name of said.begin ?? []) open.add(name);
    for (const [name, hash] of Object.entries(said.done ?? {})) {
      open.delete(name);
      files.set(name, hash);
    }
    if (said.done !== undefined) open.clear();
  }
  return { files, open };
}
