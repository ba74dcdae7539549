/** A program that makes every change there is once, in a folder of its own, and tells what came of each and of all. */

/**
 * `argv`: folder, name of its own folder, a file where it says at which line it is. Ends with the first error. Prints
 * JSON: what each call answered, and the tree in the end, without what two runs differ in (numbers, and times nobody set).
 */
export const MUTATIONS = `
import ctypes, errno, hashlib, json, mmap, os, stat, sys
os.chdir(sys.argv[1])
at = os.open(sys.argv[3], os.O_WRONLY)
def on_line(frame, event, _):
    os.pwrite(at, b"%-8d" % frame.f_lineno, 0)
    return on_line
def on_call(frame, event, _): return None
sys._getframe().f_trace = on_line
sys.settrace(on_call)
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *args):
    result = getattr(libc, name)(*args)
    if result < 0: raise OSError(ctypes.get_errno(), name)
    return result
def exchange(a, b): call("renameat2", -100, a.encode(), -100, b.encode(), 2)
def noreplace(a, b): call("renameat2", -100, a.encode(), -100, b.encode(), 1)
def fallocate(fd, mode, at, length): call("fallocate", fd, mode, ctypes.c_long(at), ctypes.c_long(length))
told = []
def tell(what): told.append(what)
def refused(code, work):
    try: work()
    except OSError as error:
        if error.errno != code: raise
        return tell(errno.errorcode[code])
    raise Exception(f"not refused with {errno.errorcode[code]}")
def put(name, data, flags=os.O_CREAT | os.O_EXCL):
    fd = os.open(name, os.O_RDWR | flags, 0o640)
    tell(os.write(fd, data))
    return fd
os.mkdir(sys.argv[2]); os.chdir(sys.argv[2])
os.mkdir("d", 0o750); os.mkdir("d/sub")
a = put("a", b"one" * 1000); os.write(a, b"more"); os.fsync(a)
os.close(put("b", b"two"))
os.close(put("c", b"three"))
refused(errno.EEXIST, lambda: os.open("c", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
fd = os.open("c", os.O_WRONLY | os.O_APPEND); os.write(fd, b" four"); os.close(fd)
fd = os.open("c", os.O_RDWR | os.O_CREAT); tell(os.read(fd, 100).decode()); os.close(fd)
os.close(put("c", b"anew", os.O_CREAT | os.O_TRUNC))
os.symlink("a/target", "l"); os.mkfifo("p", 0o600); os.mknod("m", 0o600)
os.link("b", "b2"); tell(os.stat("b").st_nlink)
os.unlink("b2"); tell(os.stat("b").st_nlink)
os.link("b", "d/b3")
exchange("b", "c"); exchange("d", "l")
exchange("d", "l")
os.rename("c", "d/moved")
os.close(put("t", b"temporary")); os.rename("t", "b")
refused(errno.EEXIST, lambda: noreplace("b", "a"))
noreplace("m", "m2")
os.rename("d/sub", "sub2"); os.mkdir("empty"); os.rename("sub2", "empty")
os.setxattr("a", "user.x", b"1", os.XATTR_CREATE)
refused(errno.EEXIST, lambda: os.setxattr("a", "user.x", b"1", os.XATTR_CREATE))
os.setxattr("a", "user.x", b"2", os.XATTR_REPLACE)
os.setxattr("a", "user.y", b"y"); os.removexattr("a", "user.y")
refused(errno.ENODATA, lambda: os.removexattr("a", "user.y"))
os.chmod("a", 0o604); os.utime("a", ns=(1_000_000_007, 2_000_000_009)); tell(os.stat("a").st_mtime_ns)
os.truncate("b", 4); os.ftruncate(a, 2000)
os.pwrite(a, b"past the end", 5000)
fallocate(a, 0, 6000, 1000); fallocate(a, 3, 100, 50)
tell(os.fstat(a).st_size)
os.copy_file_range(a, a, 10, 0, 7100) if hasattr(os, "copy_file_range") else None
with mmap.mmap(a, 0) as m: m[0:6] = b"mapped"; m.flush()
gone = put("gone", b"nameless"); os.unlink("gone"); os.write(gone, b" still")
refused(errno.ENOENT, lambda: os.unlink("gone"))
os.lseek(gone, 0, 0); tell(os.read(gone, 100).decode()); os.close(gone)
for i in range(20): os.close(put(f"d/n{i}", b""))
with os.scandir("d") as names:
    first = next(names).name
    os.mkdir("between")
    tell(sorted([first] + [entry.name for entry in names]))
refused(errno.ENOTEMPTY, lambda: os.rmdir("d"))
os.rmdir("between")
refused(errno.ENOENT, lambda: os.rmdir("between"))
for i in range(5): os.unlink(f"d/n{i}")
os.lseek(a, 0, 0); tell(hashlib.sha256(os.read(a, 1 << 20)).hexdigest()); os.close(a)
def look(path):
    s = os.lstat(path)
    line = [path, oct(s.st_mode), None if stat.S_ISDIR(s.st_mode) else [s.st_size, s.st_nlink]]
    if stat.S_ISLNK(s.st_mode): line.append(os.readlink(path))
    elif not stat.S_ISFIFO(s.st_mode): line.append({x: os.getxattr(path, x).decode() for x in os.listxattr(path)})
    if stat.S_ISREG(s.st_mode):
        with open(path, "rb") as f: line.append(hashlib.sha256(f.read()).hexdigest())
    return line
tree = []
for folder, folders, files in os.walk("."):
    folders.sort()
    for name in sorted(folders + files): tree.append(look(os.path.join(folder, name)))
print(json.dumps({"told": told, "tree": sorted(tree, key=lambda line: line[0])}, sort_keys=True))
`;
