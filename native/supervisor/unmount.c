/*
 * Unmounts in a child process: umount(2) writes back changes through mapped memory, and so waits for the daemon, which
 * the supervisor must watch meanwhile.
 */
#include "supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#define COPIES 64 /* more of them are left to umount(8) */

/* A program that is just ending, or the replayer (daemon/replayer.ts), uses the mount only for a moment. */
#define BUSY_MS 500
#define AGAIN_MS 10

/*
 * Opens the file that aborts the connection. For an ordinary user there is no other way. It needs the control file
 * system, which most systems mount. An open file never aborts a later connection with the same number.
 */
static int open_abort(unsigned number)
{
  char path[64];
  snprintf(path, sizeof path, "/sys/fs/fuse/connections/%u/abort", number);
  return open(path, O_WRONLY | O_CLOEXEC);
}

static int unmount_as_root(const char *path, enum unmount_how how)
{
  static const int flags[] = {
    [UNMOUNT_IF_FREE] = 0, [UNMOUNT_LAZILY] = MNT_DETACH, [UNMOUNT_BY_FORCE] = MNT_DETACH | MNT_FORCE};
  return umount2(path, flags[how] | UMOUNT_NOFOLLOW) < 0 ? errno : 0;
}

static int unmount_as_user(const char *path, enum unmount_how how)
{
  char message[LINE_LENGTH];
  const char *if_free[] = {"fusermount3", "-u", "--", path, NULL};
  const char *detached[] = {"fusermount3", "-u", "-z", "--", path, NULL};
  return run_fusermount(how == UNMOUNT_IF_FREE ? if_free : detached, NULL, message, sizeof message);
}

static int unmount_path(const char *path, enum unmount_how how)
{
  return geteuid() == 0 ? unmount_as_root(path, how) : unmount_as_user(path, how);
}

/* Calls to unmount take a path. They must not hit a mount that lies over ours, unless it is a copy of ours. */
static int unmount_entry(const struct table_entry *entry, enum unmount_how how)
{
  struct table_entry top;
  int error = 0;
  for (int covers = 0; error == 0 && covers < COPIES; covers++) {
    if (!find_mount_at(entry->path, &top)) return EBUSY;
    if (top.id == entry->id) return unmount_path(entry->path, how);
    if (how == UNMOUNT_IF_FREE || top.minor != entry->minor) return EBUSY;
    error = unmount_path(entry->path, UNMOUNT_LAZILY);
  }
  return error != 0 ? error : EBUSY;
}

/* Must be called before unmounting: an open device would keep the connection alive after the daemon is gone. Until then
 * the device tells our mount from others. */
static void close_device(struct mount *mount)
{
  if (mount->device >= 0) close(mount->device);
  mount->device = -1;
}

struct copies {
  int ids[COPIES];
  size_t count;
};

/* All mounts of the connection; none when another connection may have the number already. */
static struct copies list_copies(const struct mount *mount)
{
  struct copies copies;
  copies.count = list_mounts_of(mount->connection, copies.ids, COPIES);
  if (mount->device >= 0 && !is_connected(mount->device)) copies.count = 0;
  return copies;
}

static int detach_listed(const struct mount *mount, const struct copies *copies)
{
  int result = 0;
  for (size_t i = 0; i < copies->count; i++) {
    /* As long as one of them is mounted, no other connection gets the number. */
    struct mount copy = {.device = -1, .connection = mount->connection, .id = copies->ids[i]};
    struct table_entry entry;
    if (!find_our_mount(&copy, &entry)) continue;
    int error = unmount_entry(&entry, UNMOUNT_LAZILY);
    if (error != 0) result = error;
  }
  return result;
}

static int unmount(struct mount mount, enum unmount_how how)
{
  int abort = how == UNMOUNT_BY_FORCE ? open_abort(mount.connection) : -1;
  /* Copies of a mount whose daemon is dead are detached with it. After the abort nothing tells whose they are. */
  struct copies copies = {.count = 0};
  if (how == UNMOUNT_BY_FORCE) copies = list_copies(&mount);
  struct table_entry ours;
  bool found = find_our_mount(&mount, &ours);
  close_device(&mount);
  int error = 0;
  if (found) {
    if (abort >= 0 && write(abort, "1", 1) < 0) say("abort: %s", strerror(errno));
    error = unmount_entry(&ours, how);
    for (int waited = 0; error == EBUSY && how == UNMOUNT_IF_FREE && waited < BUSY_MS; waited += AGAIN_MS) {
      usleep(AGAIN_MS * 1000);
      if (!find_our_mount(&mount, &ours)) break;
      error = unmount_entry(&ours, how);
    }
    if (error != 0 && !find_our_mount(&mount, &ours)) error = 0;
  }
  detach_listed(&mount, &copies);
  return error;
}

static int detach_copies(struct mount mount)
{
  struct copies copies = list_copies(&mount);
  close_device(&mount);
  return detach_listed(&mount, &copies);
}

/*
 * Runs in a session of its own, so that a Ctrl-C at the terminal does not stop it. It keeps only the device's
 * descriptor.
 */
static pid_t start_child(const struct mount *mount)
{
  pid_t pid = fork();
  if (pid != 0) return pid;
  setsid();
  reset_descriptors(mount->device);
  become_child(INT_MAX);
  return 0;
}

pid_t start_unmount(const struct mount *mount, enum unmount_how how)
{
  pid_t pid = start_child(mount);
  if (pid == 0) _exit(unmount(*mount, how));
  return pid;
}

pid_t start_detaching_copies(const struct mount *mount)
{
  pid_t pid = start_child(mount);
  if (pid == 0) _exit(detach_copies(*mount));
  return pid;
}
