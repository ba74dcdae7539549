#!/usr/bin/env python3
"""
Records what the running kernel sends: mounts a trivial file system by /dev/fuse (as root), lets a
child process make system calls on it, and writes every raw request beside what was asked for.
Run by hand when a newer kernel is to be recorded:

    unshare -m --propagation private python3 test/fuse/golden/record.py > test/fuse/golden/linux-X.Y.json

It shares no code with src/fuse: that is its point. The numbers expected are the arguments of the
system calls; node ids and handles (@node:NAME, @fh:NAME) are those this program gave out.
"""
import ctypes, errno, fcntl, json, mmap, os, platform, select, signal, socket, stat, struct, sys, tempfile, threading, time, traceback

libc = ctypes.CDLL(None, use_errno=True)
FLAGS = {
    "all": (0x3264E029 | 1 << 1 | 1 << 10, 1 << 2, 45),  # what wsfs asks for, and locks, and supplementary groups
    "old": (1 << 0 | 1 << 5, 0, 31),                    # the least: a kernel without SETXATTR_EXT
}
GROUP, UID, GID = 4242, 1234, 2345


class Server:
    def __init__(self, fd, control, flags, flags2, minor):
        self.fd, self.control, self.flags, self.flags2, self.minor = fd, control, flags, flags2, minor
        self.nodes = {1: self.node(stat.S_IFDIR | 0o777)}
        self.names, self.ever, self.next = {}, {}, 2
        self.steps = [{"asked": "mount(2)", "expect": [{"op": 26, "args": {"major": 7}}], "requests": []}]
        self.counts, self.held, self.seen_resent = {}, None, False

    def node(self, mode, **more):
        return {"mode": mode, "size": 0, "nlink": 1, "target": b"", "rdev": 0, **more}

    def attr(self, nid):
        n = self.nodes[nid]
        return struct.pack("<6Q10I", nid, n["size"], 0, 0, 0, 0, 0, 0, 0, n["mode"], n["nlink"], UID, GROUP, n["rdev"], 4096, 0)

    def attr_out(self, nid):
        return struct.pack("<QII", 0, 0, 0) + self.attr(nid)

    def entry(self, nid):
        self.counts[nid] = self.counts.get(nid, 0) + 1
        return struct.pack("<4QII", nid, 0, 60, 0, 0, 0) + self.attr(nid)

    def make(self, name, mode, **more):
        nid, self.next = self.next, self.next + 1
        self.nodes[nid] = self.node(mode, **more)
        self.names[name] = self.ever[name] = nid
        return nid

    def reply(self, unique, error=0, body=b""):
        try:
            os.write(self.fd, struct.pack("<IiQ", 16 + len(body), -error, unique) + body)
        except OSError as e:
            if e.errno != errno.ENOENT:
                raise

    def notify(self, code, body):
        try:
            os.write(self.fd, struct.pack("<IiQ", 16 + len(body), code, 0) + body)
        except OSError as e:
            if e.errno != errno.ENOENT:
                raise

    def loop(self):
        while True:
            # What is queued belongs to the step before: requests first.
            ready, _, _ = select.select([self.fd, self.control], [], [])
            if self.fd in ready:
                message = os.read(self.fd, (1 << 20) + 4096)
                self.steps[-1]["requests"].append(message.hex())
                self.handle(message)
                continue
            line = self.control.recv(65536)
            if not line:
                return
            step = json.loads(line)
            command = step.pop("command", None)
            if command is None:
                self.steps.append({**step, "requests": []})
            elif command == "prune":
                ids = [self.ever[name] for name in step["names"]]
                expected = [{"nodeid": i, "nlookup": self.counts[i]} for i in ids]
                self.steps[-1]["batch"] = expected
                self.notify(9, struct.pack("<IIQ", len(ids), 0, 0) + b"".join(struct.pack("<Q", i) for i in ids))
            elif command == "retrieve":
                self.notify(5, struct.pack("<4QII", 0xABCDEF, self.ever[step["name"]], 0, 0, 0, 0)[:16] + struct.pack("<QII", 2, 3, 0))
            elif command == "count":
                self.steps[-1]["expect"].append({"op": 2, "nodeid": self.ever[step["name"]], "args": {"nlookup": self.counts[self.ever[step["name"]]]}})
            self.control.send(b"k")

    def handle(self, m):
        length, op, unique, nid, uid, gid, pid, ext, _ = struct.unpack_from("<IIQQIIIHH", m)
        body = m[40:length - 8 * ext]
        text = lambda at: body[at:body.index(b"\0", at)]
        fh = 1000 + nid
        ok = lambda data=b"": self.reply(unique, 0, data)
        fail = lambda error: self.reply(unique, error)
        if op == 26:
            _, _, readahead, offered, offered2 = struct.unpack_from("<5I", body)
            flags = (self.flags | (1 << 30 if self.flags2 else 0)) & offered
            ok(struct.pack("<4IHHIIHHIIH", 7, self.minor, readahead, flags, 64, 48, 1 << 20, 1, 256, 0, self.flags2 & offered2, 0, 0).ljust(64, b"\0"))
        elif op in (2, 41, 42):
            pass
        elif op == 36:
            target, = struct.unpack_from("<Q", body)
            if self.held == target:
                self.held = None
                self.reply(target, errno.EINTR)
        elif op == 1:
            name = text(0)
            if name == b"hold":
                self.held = unique
            elif name == b"again":
                if unique >> 63:
                    fail(errno.ENOENT)
                else:
                    self.notify(7, b"")
            elif name.decode() in self.names:
                ok(self.entry(self.names[name.decode()]))
            else:
                fail(errno.ENOENT)
        elif op == 3:
            ok(self.attr_out(nid))
        elif op == 4:
            valid, _, _, size = struct.unpack_from("<IIQQ", body)
            mode, = struct.unpack_from("<I", body, 68)
            if valid & 8:
                self.nodes[nid]["size"] = size
            if valid & 1:
                self.nodes[nid]["mode"] = mode
            ok(self.attr_out(nid))
        elif op == 5:
            ok(self.nodes[nid]["target"])
        elif op == 6:
            name = text(0)
            target = text(len(name) + 1)
            ok(self.entry(self.make(name.decode(), stat.S_IFLNK | 0o777, target=target, size=len(target))))
        elif op == 8:
            mode, rdev = struct.unpack_from("<II", body)
            ok(self.entry(self.make(text(16).decode(), mode, rdev=rdev)))
        elif op == 9:
            ok(self.entry(self.make(text(8).decode(), stat.S_IFDIR | 0o755, nlink=2)))
        elif op in (10, 11):
            name = text(0).decode()
            if name in self.names:
                self.nodes[self.names.pop(name)]["nlink"] -= 1
                ok()
            else:
                fail(errno.ENOENT)
        elif op in (12, 45):
            at = 8 if op == 12 else 16
            old = text(at).decode()
            new = text(at + len(old.encode()) + 1).decode()
            flags = 0 if op == 12 else struct.unpack_from("<I", body, 8)[0]
            if flags == 2:
                self.names[old], self.names[new] = self.names[new], self.names[old]
                ok()
            elif flags & 4:
                fail(errno.EINVAL)
            else:
                self.names[new] = self.ever[new] = self.names.pop(old)
                ok()
        elif op == 13:
            old, = struct.unpack_from("<Q", body)
            self.nodes[old]["nlink"] += 1
            self.names[text(8).decode()] = self.ever[text(8).decode()] = old
            ok(self.entry(old))
        elif op in (14, 27):
            ok(struct.pack("<QIi", fh, 0, 0))
        elif op == 15:
            _, offset, size = struct.unpack_from("<QQI", body)
            left = max(0, self.nodes[nid]["size"] - offset)
            ok(bytes(min(size, left)))
        elif op == 16:
            _, offset, size = struct.unpack_from("<QQI", body)
            self.nodes[nid]["size"] = max(self.nodes[nid]["size"], offset + size)
            ok(struct.pack("<II", size, 0))
        elif op == 17:
            ok(struct.pack("<5Q4I", 100, 50, 50, 10, 5, 4096, 255, 4096, 0).ljust(80, b"\0"))
        elif op in (18, 20, 25, 29, 30, 34, 21, 24, 32, 33, 43):
            ok()
        elif op == 22:
            size, = struct.unpack_from("<I", body)
            value = b"the value"
            if text(8) != b"user.golden":
                fail(errno.ENODATA)
            else:
                ok(struct.pack("<II", len(value), 0) if size == 0 else value)
        elif op == 23:
            size, = struct.unpack_from("<I", body)
            ok(struct.pack("<II", 12, 0) if size == 0 else b"user.golden\0")
        elif op in (28, 44):
            offset, = struct.unpack_from("<Q", body, 8)
            # The second chunk of a folder is what makes the kernel go over from READDIRPLUS to READDIR.
            if offset >= 3:
                ok()
            else:
                name = b"entry-%d" % (offset + 1)
                dirent = struct.pack("<QQII", 99, offset + 1, len(name), 8) + name
                dirent = dirent.ljust((len(dirent) + 7) // 8 * 8, b"\0")
                ok((bytes(128) if op == 44 else b"") + dirent)
        elif op == 31:
            ok(struct.pack("<QQII", 0, 0, 2, 0))
        elif op in (35, 51):
            if op == 51:
                fail(errno.ENOSYS)
            else:
                nid = self.make(text(16).decode(), stat.S_IFREG | 0o644)
                ok(self.entry(nid) + struct.pack("<QIi", 1000 + nid, 0, 0))
        elif op == 39:
            ok(struct.pack("<iIII", 0, 0, 0, 0))
        elif op == 40:
            ok(struct.pack("<II", 1, 0))
        elif op == 46:
            ok(struct.pack("<Q", struct.unpack_from("<Q", body, 8)[0]))
        elif op == 47:
            ok(struct.pack("<II", 4, 0))
        elif op == 52:
            ok(bytes(32) + struct.pack("<IIQIIIHHQQQQ", 0xFFF, 4096, 0, 1, 0, 0, self.nodes[nid]["mode"], 0, nid, self.nodes[nid]["size"], 0, 0).ljust(256, b"\0"))
        else:
            fail(errno.ENOSYS)


class Client:
    def __init__(self, control, root):
        self.control, self.root = control, root

    def tell(self, message):
        self.control.send(json.dumps(message).encode())
        assert self.control.recv(1) == b"k"

    def step(self, asked, run, *expect):
        self.tell({"asked": asked, "expect": [dict(zip(("op", "args", "nodeid"), e)) for e in expect]})
        result = None
        try:
            result = run()
        except OSError as e:
            print(f"{asked}: {errno.errorcode.get(e.errno)}", file=sys.stderr)
        time.sleep(0.03)  # RELEASE and FORGET come a moment later
        return result

    def path(self, name):
        return os.path.join(self.root, name)

    def run_old(self):
        p = self.path
        fd = self.step("open(file, O_CREAT|O_WRONLY, 0644), umask 0", lambda: os.open(p("file"), os.O_CREAT | os.O_WRONLY, 0o644),
                       (35, {"name": "file", "mode": 0o100644}, 1))
        self.step("setxattr(file, user.golden, 'v', 0)", lambda: os.setxattr(p("file"), "user.golden", b"v"),
                  (21, {"size": 1, "flags": 0, "setxattr_flags": 0, "name": "user.golden", "value": b"v".hex()}, "@node:file"))
        self.step("pwrite(file, 'hello', 10)", lambda: os.pwrite(fd, b"hello", 10), (16, {"offset": 10, "size": 5, "data": b"hello".hex()}, "@node:file"))
        os.close(fd)

    def run_all(self):
        p, s = self.path, self.step
        os.umask(0o027)
        s("stat(root)", lambda: os.stat(self.root), (3, {"getattr_flags": 0}, 1))
        s("mkdir(dir, 0777), umask 027", lambda: os.mkdir(p("dir"), 0o777), (9, {"mode": 0o750, "umask": 0o027, "name": "dir"}, 1))
        s("mknod(fifo, S_IFIFO|0666)", lambda: os.mknod(p("fifo"), stat.S_IFIFO | 0o666), (8, {"mode": 0o010640, "rdev": 0, "umask": 0o027, "name": "fifo"}, 1))

        def device():
            libc.setfsuid(0)  # the capability for it goes with the user id
            os.mknod(p("device"), stat.S_IFCHR | 0o600, os.makedev(259, 70000))
            libc.setfsuid(UID)
        s("mknod(device, S_IFCHR|0600, 259:70000)", device,
          (8, {"mode": 0o020600, "rdev": (70000 & 0xFF) | 259 << 8 | (70000 & ~0xFF) << 12, "name": "device"}, 1))
        s("symlink(target/ä/€, sym)", lambda: os.symlink("target/ä/€", p("sym")), (6, {"name": "sym", "target": "target/ä/€"}, 1))
        s("readlink(sym)", lambda: os.readlink(p("sym")), (5, {}, "@node:sym"))
        s("stat(Ünïcode 😀)", lambda: os.stat(p("Ünïcode 😀")), (1, {"name": "Ünïcode 😀"}, 1))
        s("mkdir(folder) with a supplementary group", lambda: os.mkdir(p("folder")), (9, {"name": "folder", "extensions": {"securityContexts": [], "groups": [GROUP]}}, 1))
        fd = s("open(file, O_CREAT|O_EXCL|O_RDWR, 0666)", lambda: os.open(p("file"), os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666),
               (35, {"name": "file", "mode": 0o100640, "umask": 0o027, "open_flags": 0, "flags": os.O_CREAT | os.O_EXCL | os.O_RDWR | 0o100000,
                     "extensions": {"securityContexts": [], "groups": [GROUP]}}, 1))
        f = "@node:file"
        s("pwrite(file, 'hello', 10)", lambda: os.pwrite(fd, b"hello", 10), (16, {"fh": "@fh:file", "offset": 10, "size": 5, "data": b"hello".hex()}, f))
        s("pwrite(file, 'far', 5 GiB + 7)", lambda: os.pwrite(fd, b"far", 5 * 2**30 + 7), (16, {"offset": 5 * 2**30 + 7, "size": 3, "data": b"far".hex()}, f))
        s("fsync(file)", lambda: os.fsync(fd), (20, {"fh": "@fh:file", "fsync_flags": 0}, f))
        s("fdatasync(file)", lambda: os.fdatasync(fd), (20, {"fh": "@fh:file", "fsync_flags": 1}, f))
        s("ftruncate(file, 123456)", lambda: os.ftruncate(fd, 123456), (4, {"valid": 0x8 | 0x40 | 0x200 | 0x800, "fh": "@fh:file", "size": 123456}, f))
        s("fallocate(file, KEEP_SIZE, 4096, 8192)", lambda: libc.fallocate(fd, 1, ctypes.c_long(4096), ctypes.c_long(8192)),
          (43, {"fh": "@fh:file", "mode": 1, "offset": 4096, "length": 8192}, f))
        s("fallocate(file, PUNCH_HOLE|KEEP_SIZE, 0, 4096)", lambda: libc.fallocate(fd, 3, ctypes.c_long(0), ctypes.c_long(4096)),
          (43, {"mode": 3, "offset": 0, "length": 4096}, f))
        s("lseek(file, 100, SEEK_DATA)", lambda: os.lseek(fd, 100, os.SEEK_DATA), (46, {"fh": "@fh:file", "offset": 100, "whence": 3}, f))
        s("lseek(file, 200, SEEK_HOLE)", lambda: os.lseek(fd, 200, os.SEEK_HOLE), (46, {"offset": 200, "whence": 4}, f))
        other = s("open(other, O_CREAT|O_WRONLY|O_TRUNC, 0600)", lambda: os.open(p("other"), os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), (35, {"name": "other"}, 1))
        s("copy_file_range(file@8 -> other@16, 4)", lambda: os.copy_file_range(fd, other, 4, 8, 16),
          *[(op, {"fh_in": "@fh:file", "off_in": 8, "nodeid_out": "@node:other", "fh_out": "@fh:other", "off_out": 16, "len": 4, "flags": 0}, f) for op in (53, 47)])
        s("ioctl(file, TCGETS)", lambda: fcntl.ioctl(fd, 0x5401, bytes(60)), (39, {"fh": "@fh:file", "cmd": 0x5401}, f))
        s("ioctl(file, _IOW('w', 1, 8), 'ABCDEFGH')", lambda: fcntl.ioctl(fd, 1 << 30 | 8 << 16 | ord("w") << 8 | 1, bytearray(b"ABCDEFGH")),
          (39, {"cmd": 1 << 30 | 8 << 16 | ord("w") << 8 | 1, "in_size": 8, "out_size": 0, "data": b"ABCDEFGH".hex()}, f))

        def poll():
            poller = select.poll()
            poller.register(fd, select.POLLIN)
            poller.poll(0)
        s("poll(file, POLLIN)", poll, (40, {"fh": "@fh:file"}, f))
        s("fcntl(file, F_GETLK, write, 5, 10)", lambda: fcntl.fcntl(fd, fcntl.F_GETLK, struct.pack("hhqqi", fcntl.F_WRLCK, 0, 5, 10, 0)),
          (31, {"fh": "@fh:file", "lk_flags": 0, "lock": {"start": 5, "end": 14, "type": 1}}, f))
        s("fcntl(file, F_SETLK, read, 0, 3)", lambda: fcntl.lockf(fd, fcntl.LOCK_SH | fcntl.LOCK_NB, 3, 0), (32, {"lock": {"start": 0, "end": 2, "type": 0}}, f))
        s("fcntl(file, F_SETLKW, write, 7, 1)", lambda: fcntl.lockf(fd, fcntl.LOCK_EX, 1, 7), (33, {"lock": {"start": 7, "end": 7, "type": 1}}, f))
        s("flock(file, LOCK_EX)", lambda: fcntl.flock(fd, fcntl.LOCK_EX), (33, {"lk_flags": 1, "lock": {"type": 1}}, f))
        s("close(dup(file))", lambda: os.close(os.dup(fd)), (25, {"fh": "@fh:file"}, f))
        s("close(file)", lambda: os.close(fd), (25, {"fh": "@fh:file"}, f), (18, {"fh": "@fh:file", "flags": os.O_RDWR | 0o100000}, f))
        os.close(other)

        fd = s("open(file, O_RDONLY|O_DIRECT)", lambda: os.open(p("file"), os.O_RDONLY | os.O_DIRECT), (14, {"flags": os.O_RDONLY | os.O_DIRECT | 0o100000, "open_flags": 0}, f))
        s("pread(file, 4096, 8192), O_DIRECT", lambda: os.preadv(fd, [memoryview(mmap.mmap(-1, 4096))], 8192), (15, {"fh": "@fh:file", "offset": 8192, "size": 4096}, f))
        s("lseek(file, 0, SEEK_END)", lambda: os.lseek(fd, 0, os.SEEK_END), (3, {"getattr_flags": 1, "fh": "@fh:file"}, f))
        os.close(fd)
        s("stat(file)", lambda: os.stat(p("file")), (3, {"getattr_flags": 0}, f))
        buffer = ctypes.create_string_buffer(256)
        s("statx(file, BASIC_STATS|BTIME)", lambda: libc.syscall(332, -100, p("file").encode(), 0, 0xFFF, buffer), (52, {"getattr_flags": 0, "sx_mask": 0xFFF}, f))
        fd = s("open(file, O_WRONLY|O_TRUNC|O_APPEND)", lambda: os.open(p("file"), os.O_WRONLY | os.O_TRUNC | os.O_APPEND),
               (14, {"flags": os.O_WRONLY | os.O_TRUNC | os.O_APPEND | 0o100000, "open_flags": 1}, f))
        os.close(fd)

        s("chmod(file, 0604)", lambda: os.chmod(p("file"), 0o604), (4, {"valid": 1, "mode": 0o100604}, f))
        s("chown(file, 1001, 1002)", lambda: os.chown(p("file"), 1001, 1002), (4, {"valid": 2 | 4 | 0x800, "uid": 1001, "gid": 1002}, f))
        s("chown(file, -1, 1003)", lambda: os.chown(p("file"), -1, 1003), (4, {"valid": 4 | 0x800, "gid": 1003}, f))
        s("truncate(file, 5 GiB)", lambda: os.truncate(p("file"), 5 * 2**30), (4, {"valid": 8 | 0x200 | 0x800, "size": 5 * 2**30}, f))
        s("utimensat(file, 1.000000002, 5000000003.000000004)", lambda: os.utime(p("file"), ns=(1_000_000_002, 5_000_000_003_000_000_004)),
          (4, {"valid": 0x30, "atime": 1, "atimensec": 2, "mtime": 5_000_000_003, "mtimensec": 4}, f))
        s("utimensat(file, -1.5 s, -2 s)", lambda: os.utime(p("file"), ns=(-1_500_000_000, -2_000_000_000)),
          (4, {"valid": 0x30, "atime": -2, "atimensec": 500_000_000, "mtime": -2, "mtimensec": 0}, f))
        s("utimensat(file, now, now)", lambda: os.utime(p("file")), (4, {"valid": 0x30 | 0x180}, f))
        times = struct.pack("<4q", 0, (1 << 30) - 2, 7, 8)  # atime omitted
        s("utimensat(file, UTIME_OMIT, 7.000000008)", lambda: libc.utimensat(-100, p("file").encode(), times, 0), (4, {"valid": 0x20, "mtime": 7, "mtimensec": 8}, f))

        s("access(file, R_OK|W_OK)", lambda: os.access(p("file"), os.R_OK | os.W_OK), (34, {"mask": 6}, f))
        s("statfs", lambda: os.statvfs(self.root), (17, {}, 1))
        s("setxattr(file, user.golden, 'the value', XATTR_CREATE)", lambda: os.setxattr(p("file"), "user.golden", b"the value", os.XATTR_CREATE),
          (21, {"size": 9, "flags": 1, "setxattr_flags": 0, "name": "user.golden", "value": b"the value".hex()}, f))
        s("setxattr(file, user.x, '', XATTR_REPLACE)", lambda: os.setxattr(p("file"), "user.x", b"", os.XATTR_REPLACE), (21, {"size": 0, "flags": 2, "name": "user.x", "value": ""}, f))
        s("getxattr(file, user.golden, NULL, 0)", lambda: libc.getxattr(p("file").encode(), b"user.golden", None, 0), (22, {"size": 0, "name": "user.golden"}, f))
        s("getxattr(file, user.golden, 100)", lambda: libc.getxattr(p("file").encode(), b"user.golden", buffer, 100), (22, {"size": 100, "name": "user.golden"}, f))
        s("listxattr(file, NULL, 0)", lambda: libc.listxattr(p("file").encode(), None, 0), (23, {"size": 0}, f))
        s("listxattr(file, 200)", lambda: libc.listxattr(p("file").encode(), buffer, 200), (23, {"size": 200}, f))
        s("removexattr(file, user.golden)", lambda: os.removexattr(p("file"), "user.golden"), (24, {"name": "user.golden"}, f))

        rename2 = lambda a, b, flags: libc.syscall(316, -100, p(a).encode(), -100, p(b).encode(), flags)
        s("link(file, hard)", lambda: os.link(p("file"), p("hard")), (13, {"oldnodeid": f, "name": "hard"}, 1))
        s("rename(other, else)", lambda: os.rename(p("other"), p("else")), (12, {"newdir": 1, "oldName": "other", "newName": "else"}, 1))
        s("renameat2(else, dir2, NOREPLACE)", lambda: rename2("else", "dir2", 1), (45, {"newdir": 1, "flags": 1, "oldName": "else", "newName": "dir2"}, 1))
        s("renameat2(file, dir2, EXCHANGE)", lambda: rename2("file", "dir2", 2), (45, {"newdir": 1, "flags": 2, "oldName": "file", "newName": "dir2"}, 1))
        s("renameat2(dir2, white, WHITEOUT)", lambda: rename2("dir2", "white", 4), (45, {"flags": 4, "oldName": "dir2", "newName": "white"}, 1))

        fd = s("open(dir, O_DIRECTORY)", lambda: os.open(p("dir"), os.O_RDONLY | os.O_DIRECTORY), (27, {"flags": os.O_RDONLY | os.O_DIRECTORY | 0o100000}, "@node:dir"))
        dents = ctypes.create_string_buffer(8192)
        s("getdents(dir, 8192)", lambda: libc.syscall(217, fd, dents, 8192), (44, {"fh": "@fh:dir", "offset": 0, "size": 8192}, "@node:dir"))
        s("getdents(dir, 8192) again", lambda: libc.syscall(217, fd, dents, 8192), (28, {"fh": "@fh:dir", "offset": 1, "size": 8192}, "@node:dir"))
        s("fsync(dir)", lambda: os.fsync(fd), (30, {"fh": "@fh:dir", "fsync_flags": 0}, "@node:dir"))
        s("close(dir)", lambda: os.close(fd), (29, {"fh": "@fh:dir"}, "@node:dir"))
        s("open(dir, O_TMPFILE|O_RDWR, 0600)", lambda: os.open(p("dir"), os.O_TMPFILE | os.O_RDWR, 0o600), (51, {"mode": 0o100600}, "@node:dir"))

        # Python restarts an interrupted call unless the handler raises.
        class Stop(Exception):
            pass
        def raise_stop(*_):
            raise Stop()
        def interrupted():
            signal.signal(signal.SIGUSR1, raise_stop)
            threading.Timer(0.1, lambda: signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)).start()
            try:
                os.stat(p("hold"))
            except Stop:
                pass
        s("stat(hold), a signal meanwhile", interrupted, (1, {"name": "hold"}, 1), (36, {}, 0))
        s("stat(again), RESEND meanwhile", lambda: os.stat(p("again")), (1, {"name": "again"}, 1))
        fd = os.open(p("dir2"), os.O_RDWR)  # what was "file" before the exchange
        os.pread(fd, 4096, 0)
        os.pwrite(fd, b"0123456789", 0)
        s("NOTIFY_RETRIEVE(file, 2, 3)", lambda: self.tell({"command": "retrieve", "name": "file"}), (41, {"offset": 2, "data": b"234".hex()}, f))
        os.close(fd)
        s("unlink(sym)", lambda: (os.unlink(p("sym")), self.tell({"command": "count", "name": "sym"})), (10, {"name": "sym"}, 1))
        s("rmdir(dir)", lambda: os.rmdir(p("dir")), (11, {"name": "dir"}, 1))
        s("NOTIFY_PRUNE(fifo, device, folder)", lambda: self.tell({"command": "prune", "names": ["fifo", "device", "folder"]}), (42, {}, 0))


def record(kind):
    flags, flags2, minor = FLAGS[kind]
    root = tempfile.mkdtemp(prefix="wsfs-golden-")
    fd = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    options = f"fd={fd},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
    if libc.mount(b"golden", root.encode(), b"fuse.golden", 6, options) != 0:
        raise OSError(ctypes.get_errno(), "mount")
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid == 0:
        os.close(fd)
        ours.close()
        signal.alarm(30)
        os.setgroups([GROUP])
        libc.setfsgid(GID)
        libc.setfsuid(UID)
        try:
            getattr(Client(theirs, root), "run_" + kind)()
        except BaseException:
            traceback.print_exc()
        finally:
            theirs.close()
            sys.stderr.flush()
            os._exit(0)
    theirs.close()
    server = Server(fd, ours, flags, flags2, minor)
    signal.alarm(60)
    server.loop()
    libc.umount2(root.encode(), 2)
    os.close(fd)
    os.waitpid(pid, 0)
    os.rmdir(root)

    def known(value):
        if isinstance(value, str) and value.startswith("@node:"):
            return server.ever[value[6:]]
        if isinstance(value, str) and value.startswith("@fh:"):
            return 1000 + server.ever[value[4:]]
        if isinstance(value, dict):
            return {k: known(v) for k, v in value.items()}
        return value

    steps = [{**step, "expect": [known(e) for e in step["expect"]]} for step in server.steps]
    return {"setxattrExtended": bool(flags & 1 << 29), "caller": {"uid": UID, "gid": GID, "pid": pid}, "steps": steps}


print(json.dumps({"kernel": platform.release().split("-")[0], "machine": platform.machine(), "recordings": {k: record(k) for k in FLAGS}}, indent=1, ensure_ascii=False))
