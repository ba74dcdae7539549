/**
 * A program that edits a shared folder at random, while others do the same through other mounts, and
 * writes down what it must be possible to find afterwards: contents, each made only once. It decides
 * nothing of what the folder shows in the end, for nobody can.
 */
import { PYTHON_KNOWN } from "./known.ts";

/**
 * `argv`: folder, log, prefix of what it writes, seed, how many edits. The log has a line per event:
 * {"has": sha256, "at": path} when a close was acknowledged, {"gone": sha256, "at": path} before that
 * content is overwritten or its last name removed by this program, {"edit": kind} after each edit, {"error": [errno, call,
 * since, until]} for what no other program's edits explain. It ends, with a log as ever, when its
 * disk has gone away.
 */
export const EDITOR = `
import ctypes, errno, hashlib, json, os, random, sys, time
folder, log, prefix, seed, count = sys.argv[1:4] + [sys.argv[4], int(sys.argv[5])]
ORDINARY = {errno.ENOENT, errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENOTEMPTY, errno.EINVAL, errno.ELOOP}
DIED = {errno.ENOTCONN, errno.ECONNABORTED}
FILES, FOLDERS, NAMES = 24, 7, 9
chance = random.Random(seed)
libc = ctypes.CDLL(None, use_errno=True)
out = os.open(log, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
def say(**line): os.write(out, (json.dumps(line) + "\\n").encode())
def digest(data): return hashlib.sha256(data).hexdigest()
made = 0
def content():
    global made
    made += 1
    return f"<{prefix} {made}>".encode() + chance.randbytes(chance.choice([0, 30, 2000, 70_000]))
${PYTHON_KNOWN}
def whole(fd):
    data, at = b"", 0
    while part := os.pread(fd, 1 << 20, at):
        data += part
        at += len(part)
    return data
def leave(path):
    "This name of its content is about to go."
    fd = os.open(path, os.O_RDONLY)
    try:
        if os.fstat(fd).st_nlink == 1: say(gone=digest(whole(fd)), at=path)
    finally: os.close(fd)
def write(path, how):
    fd = os.open(path, os.O_RDWR | os.O_CREAT | (os.O_EXCL if how == "new" else 0), 0o644)
    try:
        before = whole(fd)
        if before: say(gone=digest(before), at=path)
        if how == "over": os.ftruncate(fd, 0)
        at = len(before) if how == "append" else chance.randrange(len(before) + 1) if how == "patch" else 0
        data = content()
        half = len(data) // 2
        os.pwrite(fd, data[:half], at)
        os.pwrite(fd, data[half:], at + half)
        if chance.random() < 0.15: os.fsync(fd)
        after = digest(whole(fd))
    except BaseException:
        os.close(fd)
        raise
    os.close(fd)
    say(has=after, at=path)
def save(path):
    temporary = os.path.join(os.path.dirname(path), f".{prefix}.tmp")
    write(temporary, "over")
    replace(temporary, path)
def replace(source, target):
    if os.path.exists(target) and os.path.samefile(source, target): return
    if os.path.exists(target): leave(target)
    os.rename(source, target)
def exchange(a, b):
    if libc.renameat2(-100, a.encode(), -100, b.encode(), 2) != 0:
        raise OSError(ctypes.get_errno(), "renameat2")
def link_tree(source, target):
    os.mkdir(target)
    for name in sorted(os.listdir(source)):
        if os.path.isfile(os.path.join(source, name)): os.link(os.path.join(source, name), os.path.join(target, name))
def remove_tree(path):
    for top, below, names in os.walk(path, topdown=False):
        for name in names:
            leave(os.path.join(top, name))
            os.unlink(os.path.join(top, name))
        os.rmdir(top)
def edit():
    files, folders = known()
    place = chance.choice(folders)
    fresh = os.path.join(place, f"n{chance.randrange(NAMES)}")
    folder = os.path.join(place, f"d{chance.randrange(4)}")
    kinds = "new new over append append patch save save save backup move move replace delete link exchange chmod mkdir rmdir moved linked"
    kind = chance.choice(kinds.split())
    if len(files) < 5: kind = "new"
    if len(files) > FILES: kind = "delete" if chance.random() < 0.6 else "rmtree"
    if len(folders) > FOLDERS: kind = "rmtree"
    path = chance.choice(files) if files else fresh
    some = chance.choice(folders[1:] or [folder])
    if kind == "new": write(fresh, "new")
    elif kind in ("over", "append", "patch"): write(path, kind)
    elif kind == "save": save(path)
    elif kind == "backup":
        replace(path, path + "~")
        write(path, "new")
    elif kind == "move" and not os.path.exists(fresh): os.rename(path, fresh)
    elif kind == "replace": replace(path, chance.choice(files))
    elif kind == "delete":
        leave(path)
        os.unlink(path)
    elif kind == "link": os.link(path, fresh)
    elif kind == "exchange": exchange(path, chance.choice(files + folders[1:]))
    elif kind == "chmod": os.chmod(path, chance.choice([0o600, 0o644, 0o755]))
    elif kind == "mkdir": os.mkdir(folder)
    elif kind == "rmdir": os.rmdir(some)
    elif kind == "rmtree": remove_tree(some)
    elif kind == "moved" and not os.path.exists(folder): os.rename(some, folder)
    elif kind == "linked": link_tree(some, folder)
    return kind
kind, since = "start", time.time()
try:
    os.chdir(folder)
    for _ in range(count):
        since = time.time()
        try: say(edit=edit())
        except OSError as error:
            if error.errno in DIED: raise
            said = [errno.errorcode.get(error.errno, str(error.errno)), str(error), since, time.time()]
            if error.errno in ORDINARY: say(edit="in vain")
            else: say(error=said)
        # So that what the others do comes in between.
        time.sleep(chance.random() * 0.03)
except OSError as error:
    if error.errno not in DIED: raise
    say(died=str(error))
`;
