/**
 * What programs do on the mount while it is recorded, and what they are promised, as marks:
 *
 *     saved    the name has this content and an fsync (of file and folder) has returned
 *     prefix   the content of the name begins like this, likewise
 *     begin    the name is about to be changed: from now on also one of `allow`, or anything without it
 *     state    a content that is whole between two system calls: this may be a version
 *     rows     a database, with so many rows committed
 *     gone     the name was removed, and the folder's fsync has returned
 *     sent     with durability "remote": close or fsync has returned, the gateway has this content of the name
 */
import { PYTHON_MARK } from "./log.ts";

export const PROGRAMS = ["notes", "editor", "log", "truncate", "mapped", "remote", "rollback", "wal", "shell"] as const;

/** Those that fit a mount on which each fsync waits for the gateway. */
export const PATIENT_PROGRAMS: readonly (typeof PROGRAMS)[number][] = ["notes", "editor", "log", "truncate", "mapped"];

/** `argv`: program, folder, folder of the remote files' contents, seed, rounds. */
export const PROGRAM = `
import hashlib, mmap, random, sqlite3, subprocess, sys
${PYTHON_MARK}
program, folder, remote, seed, rounds = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5])
chance = random.Random(seed + program)
os.chdir(folder)
sha = lambda data: hashlib.sha256(data).hexdigest()
def noise(size): return chance.randbytes(size)
def rest(): time.sleep(chance.choice([0.01, 0.05, 0.2, 0.6]))
def sync_folder():
    fd = os.open(".", os.O_RDONLY); os.fsync(fd); os.close(fd)
def state(data): mark(kind="state", hash=sha(data))
def sent(name, data):
    if os.environ["WSFS_POWER_DURABILITY"] == "remote": mark(kind="sent", name=name, hash=sha(data))
def saved(name, data): mark(kind="saved", name=name, hash=sha(data)); sent(name, data)
def begin(name, *allow): mark(kind="begin", name=name, **({"allow": [sha(each) for each in allow]} if allow else {}))
def pwrite(fd, content, offset, data):
    content = bytearray(content)
    if len(content) < offset: content += bytes(offset - len(content))
    content[offset:offset + len(data)] = data
    state(content)
    os.pwrite(fd, data, offset)
    return bytes(content)

def notes():
    for number in range(rounds):
        name = f"note-{number % 5}"
        begin(name)
        state(b"")
        fd = os.open(name, os.O_CREAT | os.O_TRUNC | os.O_RDWR, 0o644)
        content = b""
        for part in range(chance.randint(1, 3)):
            content = pwrite(fd, content, len(content), noise(chance.randint(1, 20000)))
        if chance.random() < 0.7:
            os.fsync(fd); sync_folder(); saved(name, content)
            if chance.random() < 0.4:
                begin(name)
                content = pwrite(fd, content, chance.randint(0, len(content)), noise(6000))
                if chance.random() < 0.5:
                    os.fsync(fd); saved(name, content)
        os.close(fd); sent(name, content)
        rest()
        if chance.random() < 0.15:
            begin(name); os.unlink(name); sync_folder(); mark(kind="gone", name=name)

def editor():
    for number in range(rounds):
        name = f"edited-{number % 3}"
        content = noise(chance.randint(1, 30000))
        state(b""); state(content)
        begin(name + ".tmp")
        fd = os.open(name + ".tmp", os.O_CREAT | os.O_WRONLY, 0o644)
        os.write(fd, content)
        synced = chance.random() < 0.5
        if synced: os.fsync(fd)
        os.close(fd); sent(name + ".tmp", content)
        # Synced or not, it is one or the other, as on a disk.
        begin(name + ".tmp"); begin(name, content)
        os.rename(name + ".tmp", name)
        if synced: sync_folder(); mark(kind="saved", name=name, hash=sha(content))
        rest()

def log():
    content = b""
    begin("log")
    fd = os.open("log", os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o644)
    for number in range(rounds * 3):
        data = noise(chance.randint(1, 3000))
        content += data
        state(content); begin("log")
        os.write(fd, data)
        if chance.random() < 0.4:
            os.fsync(fd); sync_folder(); mark(kind="prefix", name="log", size=len(content), hash=sha(content)); sent("log", content)
        rest()
    os.close(fd)

def truncate():
    for number in range(rounds):
        content = noise(30000)
        begin("cut-short"); state(b""); state(content)
        fd = os.open("cut-short", os.O_CREAT | os.O_TRUNC | os.O_RDWR, 0o644)
        os.write(fd, content); os.fsync(fd); sync_folder(); saved("cut-short", content)
        rest()
        size = chance.choice([0, 100, 4096, 29000, 50000])
        begin("cut-short")
        content = content[:size] + bytes(max(0, size - len(content)))
        state(content)
        os.ftruncate(fd, size); os.fsync(fd); saved("cut-short", content)
        os.close(fd); sent("cut-short", content)
        rest()

def mapped():
    content = bytes(65536)
    begin("mapped"); state(b""); state(content)
    fd = os.open("mapped", os.O_CREAT | os.O_RDWR, 0o644)
    os.ftruncate(fd, 65536); os.fsync(fd); sync_folder(); saved("mapped", content)
    view = mmap.mmap(fd, 65536)
    for number in range(rounds):
        at, data = chance.randint(0, 60000), noise(5000)
        content = content[:at] + data + content[at + 5000:]
        begin("mapped"); state(content)
        view[at:at + 5000] = data
        view.flush(); saved("mapped", content)
        rest()
    view.close(); os.close(fd)

def remote_files():
    contents = {name: open(f"{remote}/{name}", "rb").read() for name in os.listdir(remote)}
    names = sorted(contents)
    for number in range(rounds):
        name = names[number % len(names)]
        content = contents[name]
        fd = os.open(name, os.O_RDWR)
        os.pread(fd, 5000, chance.randint(0, len(content) - 1))
        if chance.random() < 0.6:
            begin(name)
            for part in range(2):
                content = pwrite(fd, content, chance.randint(0, len(content) - 100), noise(100))
            contents[name] = content
            if chance.random() < 0.7:
                os.fsync(fd); saved(name, content)
        os.close(fd)
        rest()

def database(name, mode):
    rows = sqlite3.connect(name, isolation_level=None)
    rows.execute("PRAGMA locking_mode=EXCLUSIVE")
    rows.execute(f"PRAGMA journal_mode={mode}")
    rows.execute("PRAGMA synchronous=FULL")
    rows.execute("CREATE TABLE row (id INTEGER PRIMARY KEY, data BLOB)")
    for number in range(rounds):
        rows.execute("BEGIN")
        for each in range(chance.randint(1, 4)):
            rows.execute("INSERT INTO row (data) VALUES (?)", (noise(3000),))
        rows.execute("UPDATE row SET data = ? WHERE id = ?", (noise(3000), chance.randint(1, number + 1)))
        rows.execute("COMMIT")
        (count,) = rows.execute("SELECT count(*) FROM row").fetchone()
        mark(kind="rows", name=name, rows=count)
        rest()
    rows.close()

def shell():
    """A program of its own for each transaction. With mode DELETE, FULL would not sync the end of the journal."""
    run = lambda sql: subprocess.run(["sqlite3", "-bail", "shell.db", "PRAGMA journal_mode=PERSIST; PRAGMA synchronous=FULL;" + sql], check=True, capture_output=True, text=True).stdout.split("\\n")[-2]
    run("CREATE TABLE row (id INTEGER PRIMARY KEY, data BLOB)")
    for number in range(rounds):
        many = chance.randint(1, 4)
        insert = f"INSERT INTO row (data) SELECT hex(randomblob(1500)) FROM generate_series(1, {many});"
        count = run(f"BEGIN; {insert} UPDATE row SET data = hex(randomblob(1500)) WHERE id = {chance.randint(1, number + 1)}; COMMIT; SELECT count(*) FROM row")
        mark(kind="rows", name="shell.db", rows=int(count))
        rest()

{"notes": notes, "editor": editor, "log": log, "truncate": truncate, "mapped": mapped, "remote": remote_files,
 "rollback": lambda: database("rollback.db", "DELETE"), "wal": lambda: database("wal.db", "WAL"), "shell": shell}[program]()
`;
