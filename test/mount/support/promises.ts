/**
 * Programs that work in a folder until their disk goes away, and write down outside of it what was
 * acknowledged to them; and one that holds a folder against that. All in Python: what touches a
 * mount is a child process.
 */

export const PROGRAMS = ["records", "database", "commits", "copies", "names"] as const;

const COMMON = `
import ctypes, hashlib, json, os, sqlite3, subprocess, sys
SIZE, ROWS, BLOCK = 4096, 500, 65536
def record(name, number): return f"{name} {number}\\n".encode().ljust(SIZE, b".")
def source(block): return hashlib.sha256(str(block).encode()).digest() * (BLOCK // 32)
def git(*args):
    command = ["git", "-C", "repo", "-c", "user.name=A", "-c", "user.email=a@e.org", "-c", "gc.autoDetach=false", *args]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0: raise OSError(done.returncode, f"git {args}: {done.stderr}")
    return done.stdout.strip()
libc = ctypes.CDLL(None, use_errno=True)
def exchange(a, b):
    if libc.renameat2(-100, a.encode(), -100, b.encode(), 2) != 0: raise OSError(ctypes.get_errno(), "renameat2")
def hash_of(name):
    try: return hashlib.sha256(open(name, "rb").read()).hexdigest()
    except FileNotFoundError: return None
def known(log):
    if not os.path.exists(log): return []
    return [json.loads(line) for line in open(log) if line.endswith("\\n")]
`;

/**
 * `argv`: program, folder, folder of the logs, which life this is, the file that ends it. Each line
 * of a log is said before ("begin") or after what it says was acknowledged. Ends without an error,
 * but saying which, at the first call that fails.
 */
export const PROGRAM = `${COMMON}
program, folder, logs, life, stop = sys.argv[1:]
log = os.path.join(logs, program)
before = known(log)
out = os.open(log, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
def say(**line): os.write(out, (json.dumps(line) + "\\n").encode())
def goes_on(): return not os.path.exists(stop)

def records():
    """Appends with fsync; of the files of all lives the last two stay."""
    part = 0
    while goes_on():
        part += 1
        name = f"records-{int(life):05}-{part:05}"
        fd = os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND, 0o644)
        for number in range(1, 200):
            if not goes_on(): break
            os.write(fd, record(name, number)); os.fsync(fd)
            say(name=name, count=number)
        os.close(fd)
        for old in sorted(n for n in os.listdir(".") if n.startswith("records-"))[:-2]:
            say(begin=old); os.unlink(old); say(gone=old)

def database():
    base = sqlite3.connect("data.db", isolation_level=None)
    base.execute("PRAGMA synchronous = FULL")
    base.execute("CREATE TABLE IF NOT EXISTS row (n INTEGER PRIMARY KEY, data TEXT)")
    number = base.execute("SELECT coalesce(max(n), 0) FROM row").fetchone()[0]
    while goes_on():
        number += 1
        base.execute("BEGIN")
        base.execute("INSERT INTO row VALUES (?, ?)", (number, "x" * (number * 37 % 900)))
        base.execute("DELETE FROM row WHERE n <= ?", (number - ROWS,))
        base.execute("COMMIT")
        say(row=number)
    base.close()

def commits():
    if not any("commit" in line for line in before): subprocess.run(["rm", "-rf", "repo"])
    if not os.path.exists("repo"):
        os.mkdir("repo"); git("init", "--quiet")
    # What a killed git leaves, and its message asks the user to remove.
    for top, _, names in os.walk("repo/.git"):
        for name in names:
            if name.endswith(".lock"): os.unlink(os.path.join(top, name))
    number = 0
    while goes_on():
        number += 1
        with open(f"repo/f{number % 7}", "w") as f: f.write(f"{life} {number}\\n" * 50)
        git("add", "."); git("commit", "--quiet", "-m", f"{life} {number}")
        say(commit=git("rev-parse", "HEAD"))

def copies():
    number = 0
    while goes_on():
        number += 1
        name = f"copy-{number % 3}"
        data = b"".join(source(f"{life} {number} {block}") for block in range(number % 24))
        say(begin=name)
        command = ["dd", f"of={name}", "bs=16k", "conv=fsync", "status=none"]
        done = subprocess.run(command, input=data, stderr=subprocess.PIPE)
        if done.returncode != 0: raise OSError(done.returncode, f"dd: {done.stderr}")
        say(name=name, hash=hashlib.sha256(data).hexdigest())

def names():
    """Exclusive creations, links, exchanges: each is done or not done, never half."""
    a, b, c, new = "name-a", "name-b", "name-c", "name-new"
    now = {name: hash_of(name) for name in (a, b, c, new)}
    say(names=dict(now))
    def change(after, work, whole=True):
        say(begin=after, whole=whole); work()
        now.update(after); say(names=after)
    def write(flags, data, name):
        fd = os.open(name, os.O_WRONLY | flags, 0o644)
        os.write(fd, data); os.close(fd)
    number = 0
    while goes_on():
        number += 1
        data = source(f"names {life} {number}")[:5000 + number % 3000]
        if now[new] is not None: change({new: None}, lambda: os.unlink(new))
        change({new: hashlib.sha256(data).hexdigest()}, lambda: write(os.O_CREAT | os.O_EXCL, data, new), False)
        try:
            os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            raise RuntimeError("made twice")
        except FileExistsError: pass
        if now[a] is None: change({a: now[new], new: None}, lambda: os.rename(new, a)); continue
        if now[c] is not None: change({c: None}, lambda: os.unlink(c))
        change({c: now[a]}, lambda: os.link(a, c))
        if now[b] is None: change({b: now[new], new: None}, lambda: os.rename(new, b))
        else: change({new: now[b], b: now[new]}, lambda: exchange(new, b))
        both = hashlib.sha256(data * 2).hexdigest()
        change({a: both, c: both}, lambda: write(os.O_TRUNC, data * 2, a), False)
        if hash_of(c) != both: raise RuntimeError("its other name shows something else")
        change({a: now[b], b: now[a]}, lambda: exchange(a, b))

try:
    os.chdir(folder)
    # It may be gone already: nothing is to be done to the bare folder.
    if os.stat(".").st_dev == os.stat("..").st_dev: sys.exit(0)
    globals()[program]()
except (OSError, sqlite3.Error) as error: print(program, repr(error))
`;

/** `argv`: folder, folder of the logs. Prints how much was acknowledged; fails with what is not there. */
export const VERIFY = `${COMMON}
folder, logs = sys.argv[1:]
os.chdir(folder)
counts = {}

def wrong(text): sys.exit(text)

def records(lines):
    counted, unsure = {}, set()
    for line in lines:
        if "count" in line: counted[line["name"]] = line["count"]
        if "begin" in line: unsure.add(line["begin"])
        if "gone" in line:
            counted.pop(line["gone"], None)
            if os.path.exists(line["gone"]): wrong(f"{line['gone']} is back")
    for name, count in counted.items():
        if name in unsure: continue
        data = open(name, "rb").read() if os.path.exists(name) else b""
        expected = b"".join(record(name, number) for number in range(1, count + 2))
        if len(data) < count * SIZE or not expected.startswith(data):
            wrong(f"{name}: {len(data)} bytes, {count * SIZE} acknowledged, or other ones")

def database(lines):
    last = max((line["row"] for line in lines), default=0)
    if last == 0: return
    base = sqlite3.connect("data.db")
    state = base.execute("PRAGMA integrity_check").fetchall()
    if state != [("ok",)]: wrong(f"data.db: {state}")
    rows = [row for row, in base.execute("SELECT n FROM row ORDER BY n")]
    top = rows[-1] if rows else 0
    if top not in (last, last + 1) or rows != list(range(max(1, top - ROWS + 1), top + 1)):
        wrong(f"data.db: rows {rows[:1]}-{top}, acknowledged {last}")
    base.close()

def commits(lines):
    done = [line["commit"] for line in lines]
    if not done: return
    git("fsck", "--full", "--no-dangling")
    git("merge-base", "--is-ancestor", done[-1], "HEAD")

def copies(lines):
    states = {}
    for line in lines:
        if "begin" in line: states[line["begin"]] = None
        else: states[line["name"]] = line["hash"]
    for name, expected in states.items():
        if expected is None: continue
        found = hashlib.sha256(open(name, "rb").read()).hexdigest()
        if found != expected: wrong(f"{name}: {found}, acknowledged {expected}")

def names(lines):
    now, under_way = {}, None
    for line in lines:
        if "begin" in line: under_way = line
        else: now.update(line["names"]); under_way = None
    after = dict(now)
    if under_way is not None:
        after.update(under_way["begin"])
        if not under_way["whole"]:
            for name in under_way["begin"]: now.pop(name); after.pop(name)
    found = {name: hash_of(name) for name in now}
    if found not in (now, after): wrong(f"names: {found}, acknowledged {now}, perhaps {after}")

for program in (records, database, commits, copies, names):
    lines = known(os.path.join(logs, program.__name__))
    counts[program.__name__] = sum("begin" not in line for line in lines)
    program(lines)
print(json.dumps(counts))
`;
