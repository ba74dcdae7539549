/* System calls that never wait for a disk, and the ioctls of the device. */
#include "addon.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

/* Newer than the <linux/fuse.h> of many systems. */
struct backing_map {
  int32_t fd;
  uint32_t flags;
  uint64_t padding;
};
#define BACKING_OPEN _IOW(229, 1, struct backing_map)
#define BACKING_CLOSE _IOW(229, 2, uint32_t)

#define SOCKET_BUFFER (4 * 1024 * 1024) /* the kernel halves it for its own bookkeeping */

/* socketPair(type): "seqpacket" 0 or "stream" 1 -> [fd, fd]. Root gets room for messages of 1 MiB. */
napi_value socket_pair(napi_env env, napi_callback_info info)
{
  napi_value value, result;
  int type, fds[2];
  if (!get_arguments(env, info, &value, 1) || !get_int(env, value, &type)) return NULL;
  if (socketpair(AF_UNIX, (type == 0 ? SOCK_SEQPACKET : SOCK_STREAM) | SOCK_CLOEXEC, 0, fds) < 0) {
    return throw_system_error(env, errno, "socketpair");
  }
  CHECK(env, napi_create_array_with_length(env, 2, &result));
  for (uint32_t i = 0; i < 2; i++) {
    int size = SOCKET_BUFFER;
    if (setsockopt(fds[i], SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size) < 0) {
      /* For an ordinary user the limit is net.core.wmem_max. */
      (void)setsockopt(fds[i], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    }
    napi_value number;
    CHECK(env, napi_create_int32(env, fds[i], &number));
    CHECK(env, napi_set_element(env, result, i, number));
  }
  return result;
}

/* forbidCore(): from now on this process and its children leave no core file, until the limit is raised again. */
napi_value forbid_core(napi_env env, napi_callback_info info)
{
  (void)info;
  struct rlimit core;
  if (getrlimit(RLIMIT_CORE, &core) < 0) return throw_system_error(env, errno, "getrlimit");
  core.rlim_cur = 0;
  if (setrlimit(RLIMIT_CORE, &core) < 0) return throw_system_error(env, errno, "setrlimit");
  return NULL;
}

/*
 * connectSocket(place) -> [fd, uid]: connects to the Unix socket of the O_PATH descriptor `place`, even if its path
 * leads elsewhere by now. The uid is that of the listening process. Never waits: EAGAIN when too many connections wait
 * already.
 */
napi_value connect_socket(napi_env env, napi_callback_info info)
{
  napi_value value, result, number;
  int place;
  if (!get_arguments(env, info, &value, 1) || !get_int(env, value, &place)) return NULL;
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return throw_system_error(env, errno, "socket");
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d", place);
  struct ucred peer;
  socklen_t size = sizeof peer;
  const char *call = "connect";
  int error = connect(fd, (struct sockaddr *)&address, sizeof address) < 0 ? errno : 0;
  if (error == 0) {
    call = "getsockopt";
    error = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 ? errno : 0;
  }
  if (error != 0) {
    close(fd);
    return throw_system_error(env, error, call);
  }
  CHECK(env, napi_create_array_with_length(env, 2, &result));
  CHECK(env, napi_create_int32(env, fd, &number));
  CHECK(env, napi_set_element(env, result, 0, number));
  CHECK(env, napi_create_uint32(env, peer.uid, &number));
  CHECK(env, napi_set_element(env, result, 1, number));
  return result;
}

/* backingOpen(deviceFd, fd): the backing id (> 0) or -errno. */
napi_value backing_open(napi_env env, napi_callback_info info)
{
  napi_value values[2];
  int device, fd;
  if (!get_arguments(env, info, values, 2)) return NULL;
  if (!get_int(env, values[0], &device) || !get_int(env, values[1], &fd)) return NULL;
  struct backing_map map = {.fd = fd};
  int id = ioctl(device, BACKING_OPEN, &map);
  return make_number(env, id < 0 ? -errno : id);
}

/* backingClose(deviceFd, id): 0 or -errno. */
napi_value backing_close(napi_env env, napi_callback_info info)
{
  napi_value values[2];
  int device;
  int64_t id;
  if (!get_arguments(env, info, values, 2)) return NULL;
  if (!get_int(env, values[0], &device) || !get_int64(env, values[1], &id)) return NULL;
  uint32_t number = (uint32_t)id;
  return make_number(env, ioctl(device, BACKING_CLOSE, &number) < 0 ? -errno : 0);
}

/* connectionNumber(fd): the connection of a mounted /dev/fuse descriptor. Undefined when the kernel does not tell. */
napi_value connection_number(napi_env env, napi_callback_info info)
{
  napi_value value;
  int fd;
  char text[64];
  unsigned number;
  if (!get_arguments(env, info, &value, 1) || !get_int(env, value, &fd)) return NULL;
  snprintf(text, sizeof text, "/proc/self/fdinfo/%d", fd);
  FILE *file = fopen(text, "re");
  if (file == NULL) return throw_system_error(env, errno == ENOENT ? EBADF : errno, "open");
  bool found = false;
  while (!found && fgets(text, sizeof text, file) != NULL) found = sscanf(text, "fuse_connection: %u", &number) == 1;
  fclose(file);
  return found ? make_number(env, number) : make_undefined(env);
}

/* isConnected(fd): true if the kernel still sends requests to this /dev/fuse descriptor. */
napi_value is_connected(napi_env env, napi_callback_info info)
{
  napi_value value, result;
  struct pollfd source = {0};
  if (!get_arguments(env, info, &value, 1) || !get_int(env, value, &source.fd)) return NULL;
  int count;
  do {
    count = poll(&source, 1, 0);
  } while (count < 0 && errno == EINTR);
  if (count < 0) return throw_system_error(env, errno, "poll");
  CHECK(env, napi_get_boolean(env, (source.revents & (POLLERR | POLLHUP | POLLNVAL)) == 0, &result));
  return result;
}

/* A time argument is seconds and nanoseconds. With -1 nanoseconds that time stays as it is. */
static bool get_time(napi_env env, napi_value seconds, napi_value nanoseconds, struct timespec *result)
{
  int64_t whole;
  int part;
  if (!get_int64(env, seconds, &whole) || !get_int(env, nanoseconds, &part)) return false;
  *result = (struct timespec){.tv_sec = whole, .tv_nsec = part == -1 ? UTIME_OMIT : part};
  if (part < -1 || part > 999999999) {
    throw_system_error(env, EINVAL, "futimens");
    return false;
  }
  return true;
}

/* setTimes(fd, atime seconds, atime nanoseconds, mtime seconds, mtime nanoseconds) */
napi_value set_times(napi_env env, napi_callback_info info)
{
  napi_value values[5];
  int fd;
  struct timespec times[2];
  if (!get_arguments(env, info, values, 5) || !get_int(env, values[0], &fd)) return NULL;
  if (!get_time(env, values[1], values[2], &times[0]) || !get_time(env, values[3], values[4], &times[1])) return NULL;
  if (futimens(fd, times) < 0) return throw_system_error(env, errno, "futimens");
  return make_undefined(env);
}

/*
 * currentTime(): nanoseconds since the epoch, by the clock with which the kernel stamps changed files. No system call
 * tells it: it is the coarse clock, but never behind a finer stamp that was read. So the function stamps a file in
 * memory and reads the stamp.
 */
napi_value current_time(napi_env env, napi_callback_info info)
{
  (void)info;
  static _Atomic int stamped = -1;
  int fd = atomic_load(&stamped);
  if (fd < 0) {
    int made = memfd_create("wsfs-clock", MFD_CLOEXEC);
    if (made < 0) return throw_system_error(env, errno, "memfd_create");
    if (atomic_compare_exchange_strong(&stamped, &fd, made)) fd = made;
    else close(made);
  }
  struct stat stat;
  if (futimens(fd, NULL) < 0) return throw_system_error(env, errno, "futimens");
  if (fstat(fd, &stat) < 0) return throw_system_error(env, errno, "fstat");
  napi_value result;
  CHECK(env, napi_create_bigint_int64(env, stat.st_ctim.tv_sec * INT64_C(1000000000) + stat.st_ctim.tv_nsec, &result));
  return result;
}

/* seek(fd, 0 data | 1 hole, offset): undefined when there is none at or after the offset. */
napi_value seek_file(napi_env env, napi_callback_info info)
{
  napi_value values[3];
  int fd, kind;
  int64_t offset;
  if (!get_arguments(env, info, values, 3)) return NULL;
  if (!get_int(env, values[0], &fd) || !get_int(env, values[1], &kind) || !get_int64(env, values[2], &offset)) {
    return NULL;
  }
  off_t found = lseek(fd, offset, kind == 0 ? SEEK_DATA : SEEK_HOLE);
  if (found < 0 && errno == ENXIO) return make_undefined(env);
  if (found < 0) return throw_system_error(env, errno, "lseek");
  return make_number(env, (double)found);
}

/*
 * readNow(fd, bytes, position): the number of bytes read. Undefined when the first of them would have to come from the
 * disk, or when the file system cannot tell.
 */
napi_value read_now(napi_env env, napi_callback_info info)
{
  napi_value values[3];
  int fd;
  int64_t position;
  uint8_t *data;
  size_t length;
  if (!get_arguments(env, info, values, 3)) return NULL;
  if (!get_int(env, values[0], &fd) || !get_bytes(env, values[1], &data, &length)) return NULL;
  if (!get_int64(env, values[2], &position)) return NULL;
  struct iovec part = {.iov_base = data, .iov_len = length};
  ssize_t got;
  do {
    got = preadv2(fd, &part, 1, position, RWF_NOWAIT);
  } while (got < 0 && errno == EINTR);
  if (got < 0 && (errno == EAGAIN || errno == EOPNOTSUPP || errno == ENOSYS)) return make_undefined(env);
  if (got < 0) return throw_system_error(env, errno, "preadv2");
  return make_number(env, (double)got);
}

/* lockFile(fd): false when another open file description holds the lock. */
napi_value lock_file(napi_env env, napi_callback_info info)
{
  napi_value value, result;
  int fd, error;
  if (!get_arguments(env, info, &value, 1) || !get_int(env, value, &fd)) return NULL;
  do {
    error = flock(fd, LOCK_EX | LOCK_NB) < 0 ? errno : 0;
  } while (error == EINTR);
  if (error != 0 && error != EWOULDBLOCK) return throw_system_error(env, error, "flock");
  CHECK(env, napi_get_boolean(env, error == 0, &result));
  return result;
}

/*
 * isOnlyWriter(fd): true if nothing else has the file open or mapped for writing. The descriptor must be open for
 * writing. The kernel grants a write lease in that case only. The lease is given back at once. A process that opens the
 * file meanwhile waits, and the signal by which the kernel asks for the lease is ignored.
 */
napi_value is_only_writer(napi_env env, napi_callback_info info)
{
  napi_value value, result;
  int fd;
  if (!get_arguments(env, info, &value, 1) || !get_int(env, value, &fd)) return NULL;
  if (fcntl(fd, F_SETSIG, SIGURG) < 0) return throw_system_error(env, errno, "fcntl");
  int error = fcntl(fd, F_SETLEASE, F_WRLCK) < 0 ? errno : 0;
  if (error == 0) (void)fcntl(fd, F_SETLEASE, F_UNLCK);
  if (error != 0 && error != EAGAIN) return throw_system_error(env, error, "fcntl");
  CHECK(env, napi_get_boolean(env, error == 0, &result));
  return result;
}

/*
 * spreadFolders(fd): asks the disk to put each folder made in this one into a region of its own, as it does with the
 * folders at its top. The setting stays. Only ext4 and its predecessors know it.
 */
napi_value spread_folders(napi_env env, napi_callback_info info)
{
  napi_value value;
  int fd;
  if (!get_arguments(env, info, &value, 1) || !get_int(env, value, &fd)) return NULL;
  /* The kernel takes an int, whatever the definition of the ioctl says. */
  int flags;
  if (ioctl(fd, FS_IOC_GETFLAGS, &flags) < 0) return throw_system_error(env, errno, "ioctl");
  if ((flags & FS_TOPDIR_FL) != 0) return make_undefined(env);
  flags |= FS_TOPDIR_FL;
  if (ioctl(fd, FS_IOC_SETFLAGS, &flags) < 0) return throw_system_error(env, errno, "ioctl");
  return make_undefined(env);
}
