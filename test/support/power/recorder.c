/*
 * Preloaded into a program, it writes down every change the program makes below one folder, with
 * the data and in the order of its effects, and every sync with its begin and end: what power-loss
 * tests rebuild the disk from. What it cannot see (stores into a shared mapping) it calls out as
 * unknown, so that a record is never taken for more than it is.
 *
 *     WSFS_POWER_ROOT   the folder, absolute, without symbolic links
 *     WSFS_POWER_LOG    the record; log.ts reads it
 *
 * SQLite's -shm files are left out: they are rebuilt from the log after a crash.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum {
  CREATE = 1, WRITE, TRUNCATE, ALLOCATE, SYNC_BEGIN, SYNC_END, RENAME, UNLINK, MAKE_FOLDER, REMOVE_FOLDER,
  LINK, TIMES, FOLDER_SYNC_BEGIN, FOLDER_SYNC_END, MARK, UNKNOWN, DISK_SYNC_BEGIN, DISK_SYNC_END
};

struct header {
  uint32_t type, name_length, data_length, mode;
  uint64_t time, inode, a, b;
};

#define FDS 65536
#define NEXT(name) ((__typeof__(&name))next_of(#name))

static struct { char kind; uint64_t inode; char *path; } fds[FDS];
static pthread_mutex_t order = PTHREAD_MUTEX_INITIALIZER;
static uint64_t last_sync;
static const char *root;
static size_t root_length;
static int record = -1;

static void *next_of(const char *name)
{
  return dlsym(RTLD_NEXT, name);
}

__attribute__((constructor)) static void start(void)
{
  const char *log = getenv("WSFS_POWER_LOG");
  root = getenv("WSFS_POWER_ROOT");
  if (root == NULL || log == NULL) { root = NULL; return; }
  root_length = strlen(root);
  last_sync = (uint64_t)getpid() << 32;
  record = NEXT(open)(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  /* Out of the way of programs that expect low numbers. */
  int high = fcntl(record, F_DUPFD_CLOEXEC, 1000);
  if (high >= 0) { NEXT(close)(record); record = high; }
}

static void say(uint32_t type, uint64_t inode, uint64_t a, uint64_t b, uint32_t mode, const char *name, const void *data, size_t length)
{
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  struct header header = {type, name == NULL ? 0 : strlen(name), length, mode, (uint64_t)now.tv_sec * 1000000000u + now.tv_nsec, inode, a, b};
  struct iovec parts[] = {{&header, sizeof header}, {(void *)name, header.name_length}, {(void *)data, length}};
  ssize_t total = sizeof header + header.name_length + length;
  int saved = errno;
  if (NEXT(writev)(record, parts, 3) != total) abort();
  errno = saved;
}

/* The path below the folder, or NULL when it is none of ours. */
static const char *ours(int at, const char *path, char *buffer)
{
  if (root == NULL || path == NULL) return NULL;
  if (path[0] != '/') {
    char base[64];
    snprintf(base, sizeof base, at == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", at);
    ssize_t length = readlink(base, buffer, PATH_MAX - 1);
    if (length < 0 || length + strlen(path) + 2 > PATH_MAX) return NULL;
    buffer[length] = '/';
    strcpy(buffer + length + 1, path);
    path = buffer;
  } else {
    if (strlen(path) >= PATH_MAX) return NULL;
    strcpy(buffer, path);
  }
  if (strncmp(buffer, root, root_length) != 0) return NULL;
  if (buffer[root_length] == 0) return buffer + root_length;
  if (buffer[root_length] != '/') return NULL;
  size_t length = strlen(buffer);
  while (length > 0 && buffer[length - 1] == '/') buffer[--length] = 0;
  if (length > 4 && strcmp(buffer + length - 4, "-shm") == 0) return NULL;
  return buffer + root_length + 1;
}

/* Not every close passes here (libuv's does not): the number may be another file's by now. */
static int is_open(int fd)
{
  struct stat stat;
  if (fd < 0 || fd >= FDS || fds[fd].kind == 0) return 0;
  if (fstat(fd, &stat) == 0 && stat.st_ino == fds[fd].inode && (S_ISREG(stat.st_mode) || S_ISDIR(stat.st_mode))) return 1;
  fds[fd].kind = 0;
  return 0;
}

static int is_file(int fd)
{
  return is_open(fd) && fds[fd].kind == 'f';
}

static int open_any(int at, const char *path, int flags, mode_t mode)
{
  char buffer[PATH_MAX];
  const char *name = ours(at, path, buffer);
  if (name == NULL) return NEXT(openat)(at, path, flags, mode);
  pthread_mutex_lock(&order);
  struct stat stat;
  int is_new = fstatat(at, path, &stat, 0) != 0;
  int fd = NEXT(openat)(at, path, flags, mode);
  int saved = errno;
  if (fd >= 0 && fd < FDS && fstat(fd, &stat) == 0) {
    fds[fd].kind = S_ISREG(stat.st_mode) ? 'f' : S_ISDIR(stat.st_mode) ? 'd' : 0;
    fds[fd].inode = stat.st_ino;
    free(fds[fd].path);
    fds[fd].path = strdup(name);
    if (fds[fd].kind == 'f' && is_new) say(CREATE, stat.st_ino, 0, 0, 0, name, NULL, 0);
    else if (fds[fd].kind == 'f' && (flags & O_TRUNC)) say(TRUNCATE, stat.st_ino, 0, 0, 0, NULL, NULL, 0);
    if ((flags & O_TMPFILE) == O_TMPFILE || (flags & O_DSYNC)) say(UNKNOWN, 0, 0, 0, 0, "open flags", NULL, 0);
  }
  pthread_mutex_unlock(&order);
  errno = saved;
  return fd;
}

#define MODE(flags, last) \
  mode_t mode = 0; \
  if ((flags) & (O_CREAT | O_TMPFILE)) { va_list rest; va_start(rest, last); mode = va_arg(rest, mode_t); va_end(rest); }

int open(const char *path, int flags, ...) { MODE(flags, flags) return open_any(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE(flags, flags) return open_any(AT_FDCWD, path, flags, mode); }
int openat(int at, const char *path, int flags, ...);
int openat64(int at, const char *path, int flags, ...) { MODE(flags, flags) return open_any(at, path, flags, mode); }
int openat(int at, const char *path, int flags, ...) { MODE(flags, flags) return open_any(at, path, flags, mode); }
int creat(const char *path, mode_t mode) { return open_any(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }

int close(int fd)
{
  /* The record stays open: programs that close every descriptor would end it. */
  if (fd >= 0 && fd == record) { errno = EBADF; return -1; }
  if (fd >= 0 && fd < FDS) fds[fd].kind = 0;
  return NEXT(close)(fd);
}

static off_t place_of(int fd)
{
  struct stat stat;
  int flags = fcntl(fd, F_GETFL);
  if (flags & O_APPEND) return fstat(fd, &stat) == 0 ? stat.st_size : 0;
  return lseek(fd, 0, SEEK_CUR);
}

#define WRITES(fd, offset, call, from) \
  if (!is_file(fd)) return call; \
  pthread_mutex_lock(&order); \
  off_t place = (offset); \
  ssize_t written = call; \
  if (written > 0) from; \
  int saved = errno; \
  pthread_mutex_unlock(&order); \
  errno = saved; \
  return written;

static void say_parts(int fd, off_t place, const struct iovec *parts, int count, ssize_t written)
{
  for (int i = 0; i < count && written > 0; i++) {
    size_t length = parts[i].iov_len < (size_t)written ? parts[i].iov_len : (size_t)written;
    say(WRITE, fds[fd].inode, place, 0, 0, NULL, parts[i].iov_base, length);
    place += length;
    written -= length;
  }
}

#define ONE say(WRITE, fds[fd].inode, place, 0, 0, NULL, data, written)

ssize_t write(int fd, const void *data, size_t length) { WRITES(fd, place_of(fd), NEXT(write)(fd, data, length), ONE) }
ssize_t pwrite(int fd, const void *data, size_t length, off_t offset) { WRITES(fd, offset, NEXT(pwrite)(fd, data, length, offset), ONE) }
ssize_t pwrite64(int fd, const void *data, size_t length, off64_t offset) { WRITES(fd, offset, NEXT(pwrite)(fd, data, length, offset), ONE) }
ssize_t writev(int fd, const struct iovec *parts, int count) { WRITES(fd, place_of(fd), NEXT(writev)(fd, parts, count), say_parts(fd, place, parts, count, written)) }
ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset) { WRITES(fd, offset, NEXT(pwritev)(fd, parts, count, offset), say_parts(fd, place, parts, count, written)) }
ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t offset) { WRITES(fd, offset, NEXT(pwritev)(fd, parts, count, offset), say_parts(fd, place, parts, count, written)) }

/* What a copy inside the kernel left is read back. */
static void say_copied(int fd, off_t offset, size_t length)
{
  char *data = malloc(length);
  ssize_t got = data == NULL ? -1 : pread(fd, data, length, offset);
  if (got != (ssize_t)length) say(UNKNOWN, 0, 0, 0, 0, "a copy that cannot be read", NULL, 0);
  else say(WRITE, fds[fd].inode, offset, 0, 0, NULL, data, length);
  free(data);
}

ssize_t copy_file_range(int from, off64_t *from_offset, int fd, off64_t *offset, size_t length, unsigned flags)
{
  WRITES(fd, offset == NULL ? place_of(fd) : *offset, NEXT(copy_file_range)(from, from_offset, fd, offset, length, flags), say_copied(fd, place, written))
}

ssize_t sendfile(int fd, int from, off_t *offset, size_t length) { WRITES(fd, place_of(fd), NEXT(sendfile)(fd, from, offset, length), say_copied(fd, place, written)) }
ssize_t sendfile64(int fd, int from, off64_t *offset, size_t length) { WRITES(fd, place_of(fd), NEXT(sendfile)(fd, from, offset, length), say_copied(fd, place, written)) }

int ioctl(int fd, unsigned long request, ...)
{
  va_list rest;
  va_start(rest, request);
  void *argument = va_arg(rest, void *);
  va_end(rest);
  if (!is_file(fd) || (request != FICLONE && request != FICLONERANGE)) return NEXT(ioctl)(fd, request, argument);
  pthread_mutex_lock(&order);
  int result = NEXT(ioctl)(fd, request, argument);
  int saved = errno;
  struct stat stat;
  if (result == 0 && request == FICLONERANGE) say(UNKNOWN, 0, 0, 0, 0, "FICLONERANGE", NULL, 0);
  else if (result == 0 && fstat(fd, &stat) == 0) {
    say(TRUNCATE, fds[fd].inode, stat.st_size, 0, 0, NULL, NULL, 0);
    if (stat.st_size > 0) say_copied(fd, 0, stat.st_size);
  }
  pthread_mutex_unlock(&order);
  errno = saved;
  return result;
}

#define CHANGES(condition, call, what) \
  if (!(condition)) return call; \
  pthread_mutex_lock(&order); \
  int result = call; \
  int saved = errno; \
  if (result == 0) { what; } \
  pthread_mutex_unlock(&order); \
  errno = saved; \
  return result;

int ftruncate(int fd, off_t size) { CHANGES(is_file(fd), NEXT(ftruncate)(fd, size), say(TRUNCATE, fds[fd].inode, size, 0, 0, NULL, NULL, 0)) }
int ftruncate64(int fd, off64_t size) { CHANGES(is_file(fd), NEXT(ftruncate)(fd, size), say(TRUNCATE, fds[fd].inode, size, 0, 0, NULL, NULL, 0)) }
int truncate(const char *path, off_t size)
{
  char buffer[PATH_MAX];
  CHANGES(ours(AT_FDCWD, path, buffer) != NULL, NEXT(truncate)(path, size), say(UNKNOWN, 0, 0, 0, 0, "truncate", NULL, 0))
}
int fallocate(int fd, int mode, off_t offset, off_t length) { CHANGES(is_file(fd), NEXT(fallocate)(fd, mode, offset, length), say(ALLOCATE, fds[fd].inode, offset, length, mode, NULL, NULL, 0)) }
int fallocate64(int fd, int mode, off64_t offset, off64_t length) { CHANGES(is_file(fd), NEXT(fallocate)(fd, mode, offset, length), say(ALLOCATE, fds[fd].inode, offset, length, mode, NULL, NULL, 0)) }
int posix_fallocate(int fd, off_t offset, off_t length) { CHANGES(is_file(fd), NEXT(posix_fallocate)(fd, offset, length), say(ALLOCATE, fds[fd].inode, offset, length, 0, NULL, NULL, 0)) }
int posix_fallocate64(int fd, off64_t offset, off64_t length) { CHANGES(is_file(fd), NEXT(posix_fallocate)(fd, offset, length), say(ALLOCATE, fds[fd].inode, offset, length, 0, NULL, NULL, 0)) }

static uint64_t nanoseconds(const struct timespec *time)
{
  return (uint64_t)time->tv_sec * 1000000000u + time->tv_nsec;
}

int futimens(int fd, const struct timespec times[2])
{
  CHANGES(is_file(fd) && times != NULL && times[1].tv_nsec != UTIME_OMIT, NEXT(futimens)(fd, times), say(TIMES, fds[fd].inode, nanoseconds(&times[1]), 0, 0, NULL, NULL, 0))
}

static int move(int from_at, const char *from, int to_at, const char *to, unsigned flags)
{
  char a[PATH_MAX], b[PATH_MAX];
  const char *source = ours(from_at, from, a), *target = ours(to_at, to, b);
  CHANGES(source != NULL || target != NULL, NEXT(renameat2)(from_at, from, to_at, to, flags), {
    if (source == NULL || target == NULL || flags != 0) say(UNKNOWN, 0, 0, 0, 0, "rename", NULL, 0);
    else say(RENAME, 0, 0, 0, 0, source, target, strlen(target));
  })
}
int rename(const char *from, const char *to) { return move(AT_FDCWD, from, AT_FDCWD, to, 0); }
int renameat(int from_at, const char *from, int to_at, const char *to) { return move(from_at, from, to_at, to, 0); }
int renameat2(int from_at, const char *from, int to_at, const char *to, unsigned flags) { return move(from_at, from, to_at, to, flags); }

int linkat(int from_at, const char *from, int to_at, const char *to, int flags)
{
  char buffer[PATH_MAX];
  CHANGES(ours(to_at, to, buffer) != NULL, NEXT(linkat)(from_at, from, to_at, to, flags), say(UNKNOWN, 0, 0, 0, 0, "link", NULL, 0))
}
int link(const char *from, const char *to) { return linkat(AT_FDCWD, from, AT_FDCWD, to, 0); }

int unlinkat(int at, const char *path, int flags)
{
  char buffer[PATH_MAX];
  const char *name = ours(at, path, buffer);
  CHANGES(name != NULL, NEXT(unlinkat)(at, path, flags), say(flags & AT_REMOVEDIR ? REMOVE_FOLDER : UNLINK, 0, 0, 0, 0, name, NULL, 0))
}
int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }
int mkdirat(int at, const char *path, mode_t mode)
{
  char buffer[PATH_MAX];
  const char *name = ours(at, path, buffer);
  CHANGES(name != NULL, NEXT(mkdirat)(at, path, mode), say(MAKE_FOLDER, 0, 0, 0, 0, name, NULL, 0))
}
int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }

/* A sync holds for what was done before it began, once it has ended. */
static int synced(int fd, int (*sync)(int))
{
  if (!is_open(fd)) return sync(fd);
  int is_folder = fds[fd].kind == 'd';
  uint64_t inode = fds[fd].inode;
  char name[PATH_MAX];
  pthread_mutex_lock(&order);
  snprintf(name, sizeof name, "%s", fds[fd].path);
  uint64_t id = ++last_sync;
  say(is_folder ? FOLDER_SYNC_BEGIN : SYNC_BEGIN, inode, id, 0, 0, name, NULL, 0);
  pthread_mutex_unlock(&order);
  int result = sync(fd);
  int saved = errno;
  pthread_mutex_lock(&order);
  if (result == 0) say(is_folder ? FOLDER_SYNC_END : SYNC_END, inode, id, 0, 0, name, NULL, 0);
  pthread_mutex_unlock(&order);
  errno = saved;
  return result;
}
int fsync(int fd) { return synced(fd, NEXT(fsync)); }
int fdatasync(int fd) { return synced(fd, NEXT(fdatasync)); }

int syncfs(int fd)
{
  if (!is_open(fd)) return NEXT(syncfs)(fd);
  pthread_mutex_lock(&order);
  uint64_t id = ++last_sync;
  say(DISK_SYNC_BEGIN, 0, id, 0, 0, NULL, NULL, 0);
  pthread_mutex_unlock(&order);
  int result = NEXT(syncfs)(fd);
  int saved = errno;
  if (result == 0) say(DISK_SYNC_END, 0, id, 0, 0, NULL, NULL, 0);
  errno = saved;
  return result;
}

static void *map(void *at, size_t length, int protection, int flags, int fd, off_t offset)
{
  if (is_file(fd) && (flags & MAP_SHARED) && (protection & PROT_WRITE)) say(UNKNOWN, 0, 0, 0, 0, "a shared mapping", NULL, 0);
  return NEXT(mmap)(at, length, protection, flags, fd, offset);
}
void *mmap(void *at, size_t length, int protection, int flags, int fd, off_t offset) { return map(at, length, protection, flags, fd, offset); }
void *mmap64(void *at, size_t length, int protection, int flags, int fd, off64_t offset) { return map(at, length, protection, flags, fd, offset); }
