/* Preloaded: a file is empty from right after its first data were found (SEEK_DATA) on, as by somebody who cut it short. */
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

off_t lseek(int fd, off_t offset, int whence)
{
  off_t found = syscall(SYS_lseek, fd, offset, whence);
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  if (whence == SEEK_DATA && found >= 0 && truncate(path, 0) < 0) return -1;
  return found;
}

off64_t lseek64(int fd, off64_t offset, int whence)
{
  return lseek(fd, offset, whence);
}
