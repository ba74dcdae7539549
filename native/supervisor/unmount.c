/*
 * Unmounting, in a child process: umount(2) writes back what programs changed through mapped
 * memory, and so waits for the daemon, which the supervisor has to watch meanwhile.
 */
#include "supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

/* The only way for an ordinary user; needs the control file system, which most systems mount. */
static void abort_connection(unsigned number)
{
  char path[64];
  snprintf(path, sizeof path, "/sys/fs/fuse/connections/%u/abort", number);
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  if (write(fd, "1", 1) < 0) fprintf(stderr, "wsfs: %s: %s\n", path, strerror(errno));
  close(fd);
}

static int unmount_as_root(const char *path, enum unmount_how how)
{
  static const int flags[] = {
    [UNMOUNT_IF_FREE] = 0, [UNMOUNT_LAZILY] = MNT_DETACH, [UNMOUNT_BY_FORCE] = MNT_DETACH | MNT_FORCE};
  /* A signal that came between fork and setsid may interrupt the wait for the write-back. */
  int result;
  do result = umount2(path, flags[how] | UMOUNT_NOFOLLOW);
  while (result < 0 && errno == EINTR);
  return result < 0 ? errno : 0;
}

static int unmount_as_user(const char *path, enum unmount_how how)
{
  char message[LINE_LENGTH];
  const char *if_free[] = {"fusermount3", "-u", "--", path, NULL};
  const char *detached[] = {"fusermount3", "-u", "-z", "--", path, NULL};
  return run_fusermount(how == UNMOUNT_IF_FREE ? if_free : detached, NULL, message, sizeof message);
}

static int unmount(const struct mount *mount, enum unmount_how how)
{
  if (how == UNMOUNT_BY_FORCE) abort_connection(mount->connection);
  struct table_entry ours, top;
  if (!find_our_mount(mount, &ours)) return 0;
  /* The calls below take a path: they must not hit what somebody mounted over ours. */
  if (!find_mount_at(ours.path, &top) || top.id != ours.id) return EBUSY;
  int error = geteuid() == 0 ? unmount_as_root(ours.path, how) : unmount_as_user(ours.path, how);
  return error != 0 && !find_our_mount(mount, &ours) ? 0 : error;
}

pid_t start_unmount(const struct mount *mount, enum unmount_how how)
{
  pid_t pid = fork();
  if (pid != 0) return pid;
  setsid(); /* not for a Ctrl-C at the terminal to stop */
  become_child(STDERR_FILENO + 1); /* above all, without the device: it would keep the connection */
  _exit(unmount(mount, how));
}
