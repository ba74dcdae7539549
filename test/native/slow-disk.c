/*
 * Preloaded: nothing is in memory, and each pread(2) takes as many milliseconds as WSFS_DISK_MS_FILE says.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

ssize_t preadv2(int fd, const struct iovec *parts, int count, off_t offset, int flags)
{
  (void)fd, (void)parts, (void)count, (void)offset, (void)flags;
  errno = EAGAIN;
  return -1;
}

ssize_t preadv64v2(int fd, const struct iovec *parts, int count, off64_t offset, int flags)
{
  return preadv2(fd, parts, count, offset, flags);
}

ssize_t pread(int fd, void *bytes, size_t size, off_t offset)
{
  const char *path = getenv("WSFS_DISK_MS_FILE");
  FILE *file = path == NULL ? NULL : fopen(path, "re");
  double milliseconds = 0;
  if (file != NULL && fscanf(file, "%lf", &milliseconds) != 1) milliseconds = 0;
  if (file != NULL) fclose(file);
  if (milliseconds > 0) usleep((useconds_t)(1000 * milliseconds));
  return syscall(SYS_pread64, fd, bytes, size, offset);
}

ssize_t pread64(int fd, void *bytes, size_t size, off64_t offset)
{
  return pread(fd, bytes, size, offset);
}
