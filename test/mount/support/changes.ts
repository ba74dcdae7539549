/** A program that makes every kind of change once in a folder, and says what was promised to it. */

/**
 * `argv`: folder, log, prefix of its names, how many small files besides. The log is that of
 * support/crash.ts: {"begin": [name, ...]} before each change, {"done": {name: content}} after it,
 * where the content is a file's sha-256, "folder", a link's target, or null. Before it begins it
 * holds what is in the folder against the log so far; what was left unanswered is promised as it is found.
 * Ends, without an error but saying which, at the first call that fails.
 */
export const CHANGES = `
import ctypes, hashlib, json, os, sys
folder, log, prefix, many = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
promised, unknown = {}, set()
if os.path.exists(log):
    for line in open(log):
        if not line.endswith("\\n"): break
        said = json.loads(line)
        unknown.update(said.get("begin", []))
        for name, what in said.get("done", {}).items():
            promised[name] = what
            unknown.discard(name)
def look(name):
    try:
        if os.path.islink(name): return "-> " + os.readlink(name)
        if os.path.isdir(name): return "folder"
        with open(name, "rb") as f: return hashlib.sha256(f.read()).hexdigest()
    except FileNotFoundError: return None
libc = ctypes.CDLL(None, use_errno=True)
def exchange(a, b):
    if libc.renameat2(-100, a.encode(), -100, b.encode(), 2) != 0:
        raise OSError(ctypes.get_errno(), "renameat2")
out = os.open(log, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
def say(line): os.write(out, (json.dumps(line) + "\\n").encode())
def change(names, work):
    say({"begin": names})
    say({"done": work()})
made = 0
def content(size=3000):
    global made
    made += 1
    return (f"{prefix} {made}\\n" * (size // 8)).encode()
def write(name, data, flags=os.O_CREAT | os.O_TRUNC, sync=False):
    fd = os.open(name, os.O_WRONLY | flags, 0o644)
    half = len(data) // 2
    os.write(fd, data[:half]); os.write(fd, data[half:])
    if sync: os.fsync(fd)
    os.close(fd)
    return {name: look(name)}
def remove(name):
    # Not asked for first: to os.path.lexists a mount whose daemon has died shows no names.
    try: os.unlink(name)
    except FileNotFoundError: pass
    return {name: None}
try:
    os.chdir(folder)
    # The daemon may be dead already, and its mount gone.
    if os.stat(".").st_dev == os.stat("..").st_dev: sys.exit(0)
    for name, what in promised.items():
        if name in unknown: continue
        found = look(name)
        if found != what: sys.exit(f"{name} is {found}, promised was {what}")
    # What nobody answered may have happened or not; as it is found now it stays.
    for name in sorted(unknown):
        promised[name] = look(name)
        say({"done": {name: promised[name]}})
    # What is left of the last life is taken away: the folder stays small.
    for name in list(promised):
        if promised[name] is not None and promised[name] != "folder" and name != "kept" and not name.startswith(prefix):
            change([name], lambda: remove(name))
    a, b, c, d, l, t = [f"{prefix}-{x}" for x in "abcdlt"]
    change([d], lambda: (os.mkdir(d), {d: "folder"})[1])
    change([a], lambda: write(a, content(), sync=True))
    change([f"{d}/x"], lambda: write(f"{d}/x", content(700_000)))
    change([l], lambda: (os.symlink(a, l), {l: "-> " + a})[1])
    change([a], lambda: write(a, b"more", os.O_APPEND))
    change([a], lambda: (os.truncate(a, 50), {a: look(a)})[1])
    change([a], lambda: (os.chmod(a, 0o600), os.utime(a, (1, 2)), os.setxattr(a, "user.tag", b"x"), {a: look(a)})[3])
    change([b], lambda: write(b, content()))
    change([c], lambda: (os.link(b, c), {c: look(b)})[1])
    change([c], lambda: (os.unlink(c), {c: None})[1])
    change([a, b], lambda: (exchange(a, b), {a: look(a), b: look(b)})[1])
    change([t], lambda: write(t, content()))
    change([t, a], lambda: (os.rename(t, a), {t: None, a: look(a)})[1])
    change([b, f"{d}/b"], lambda: (os.rename(b, f"{d}/b"), {b: None, f"{d}/b": look(f"{d}/b")})[1])
    change([f"{d}/b"], lambda: (os.unlink(f"{d}/b"), {f"{d}/b": None})[1])
    change([t], lambda: (os.mkdir(t), {t: "folder"})[1])
    change([t], lambda: (os.rmdir(t), {t: None})[1])
    # One file of all lives: the gateway has it by then.
    change(["kept"], lambda: write("kept", content()))
    change(["kept"], lambda: write("kept", b"more", os.O_APPEND))
    # Only the gateway has it; one for each life.
    far = sorted(os.listdir("far")) if os.path.isdir("far") else []
    for name in [f"far/{name}" for name in far if f"far/{name}" not in promised][:1]:
        change([name], lambda: write(name, b"more", os.O_APPEND))
    for i in range(many): change([f"{d}/m{i}"], lambda: write(f"{d}/m{i}", content(100)))
    for name in os.listdir("."):
        if name.startswith("remote"): look(name)
except OSError as error: print(error)
`;
