/*
 * Mounting: by mount(2) as root, by fusermount3 otherwise, or by a daemon that mounts itself. Each failure has a
 * message of its own.
 */
#include "supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#define OPTIONS_LENGTH 4096 /* the kernel takes one page */

struct reason {
  char *text;
  size_t size;
};

static bool __attribute__((format(printf, 2, 3))) refuse(struct reason reason, const char *format, ...)
{
  va_list values;
  va_start(values, format);
  vsnprintf(reason.text, reason.size, format, values);
  va_end(values);
  return false;
}

static bool mount_as_root(const struct options *options, const char *folder, int *device, struct reason reason)
{
  *device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
  if (*device < 0) return refuse(reason, "cannot mount: /dev/fuse cannot be opened: %s", strerror(errno));
  char data[OPTIONS_LENGTH];
  int length = snprintf(data, sizeof data, "fd=%d,rootmode=40000,user_id=%u,group_id=%u%s%s", *device, getuid(),
                        getgid(), *options->extra == '\0' ? "" : ",", options->extra);
  unsigned long flags = MS_NOSUID | MS_NODEV | (options->read_only ? MS_RDONLY : 0UL);
  int error = length < (int)sizeof data ? 0 : E2BIG;
  if (error == 0 && mount(options->source, folder, "fuse.wsfs", flags, data) < 0) error = errno;
  if (error == 0) return true;
  close(*device);
  if (error == EPERM) {
    return refuse(reason, "cannot mount on %s: not permitted here (root without CAP_SYS_ADMIN)", folder);
  }
  if (error == EINVAL) {
    return refuse(reason, "cannot mount on %s: the kernel refuses the options '%s'", folder, options->extra);
  }
  return refuse(reason, "cannot mount on %s: %s", folder, strerror(error));
}

/* Commas and backslashes of a name must be escaped in fusermount3's list of options. */
static void append_escaped(char *list, size_t size, const char *name)
{
  size_t length = strlen(list);
  for (; *name != '\0' && length + 3 < size; name++) {
    if (*name == ',' || *name == '\\') list[length++] = '\\';
    list[length++] = *name;
  }
  list[length] = '\0';
}

static bool mount_as_user(const struct options *options, const char *folder, int *device, struct reason reason)
{
  char list[OPTIONS_LENGTH] = "subtype=wsfs,fsname=", message[LINE_LENGTH];
  append_escaped(list, sizeof list, options->source);
  size_t length = strlen(list);
  if (length + strlen(options->extra) + sizeof ",nosuid,nodev,ro," > sizeof list) {
    return refuse(reason, "cannot mount on %s: %s", folder, strerror(E2BIG));
  }
  snprintf(list + length, sizeof list - length, ",nosuid,nodev%s%s%s", options->read_only ? ",ro" : "",
           *options->extra == '\0' ? "" : ",", options->extra);
  const char *arguments[] = {"fusermount3", "-o", list, "--", folder, NULL};
  int error = run_fusermount(arguments, device, message, sizeof message);
  if (error == 0) return true;
  if (error == ENOENT) {
    return refuse(reason, "cannot mount: fusermount3 is not installed (package fuse3); only root mounts without it");
  }
  if (strstr(message, "user_allow_other") != NULL) {
    return refuse(reason, "cannot mount for other users: /etc/fuse.conf has no line 'user_allow_other'");
  }
  if (strstr(message, "failed to open /dev/fuse") != NULL) {
    return refuse(reason, "cannot mount: /dev/fuse is closed to this user (root opens it to all with 'chmod 666 /dev/fuse')");
  }
  return refuse(reason, "cannot mount on %s: %s", folder, *message == '\0' ? "fusermount3 failed" : message);
}

/* The kernel's number of the device's connection. False when it does not tell (older kernels). */
static bool read_connection(int device, unsigned *number)
{
  char text[64];
  snprintf(text, sizeof text, "/proc/self/fdinfo/%d", device);
  FILE *file = fopen(text, "re");
  if (file == NULL) return false;
  bool found = false;
  while (!found && fgets(text, sizeof text, file) != NULL) found = sscanf(text, "fuse_connection: %u", number) == 1;
  fclose(file);
  return found;
}

/*
 * Finds our mount: the one of our connection, or the visible one at the folder when the kernel does not tell the
 * number.
 */
static bool find_new_mount(const char *folder, int device, struct mount *mount, struct table_entry *entry)
{
  unsigned connection;
  bool knows = read_connection(device, &connection);
  bool found = knows ? find_mount_of(connection, entry) : find_mount_at(folder, entry);
  if (!found || !is_connected(device)) return false; /* unmounted already; another mount may have the number */
  *mount = (struct mount){.device = device, .connection = entry->minor, .id = entry->id};
  /* Another mount may lie over it. The unique id of the path is then not ours. */
  struct table_entry same;
  uint64_t unique = unique_id_at(folder);
  if (unique != 0 && find_mount_by_unique_id(unique, &same) == 0 && same.id == entry->id && same.minor == entry->minor) {
    mount->unique = unique;
  }
  return true;
}

bool find_mount_of_device(int device, struct mount *mount)
{
  unsigned connection;
  struct table_entry entry;
  if (!read_connection(device, &connection) || !find_mount_of(connection, &entry)) return false;
  return find_new_mount(entry.path, device, mount, &entry);
}

/* A mount that lies under another one is left: it ends together with the device. */
static void undo(const struct mount *mount)
{
  struct table_entry ours, top;
  char message[LINE_LENGTH];
  if (!find_our_mount(mount, &ours) || !find_mount_at(ours.path, &top) || top.id != ours.id) return;
  const char *arguments[] = {"fusermount3", "-u", "-z", "--", ours.path, NULL};
  if (geteuid() == 0) umount2(ours.path, MNT_DETACH | UMOUNT_NOFOLLOW);
  else run_fusermount(arguments, NULL, message, sizeof message);
}

static bool make_mount(const struct options *options, char *folder, int *device, struct reason reason)
{
  if (access("/dev/fuse", F_OK) < 0) {
    return refuse(reason, "cannot mount: there is no /dev/fuse (load it with 'modprobe fuse'; give a container '--device /dev/fuse')");
  }
  if (realpath(options->mountpoint, folder) == NULL) {
    return refuse(reason, "cannot mount on %s: %s", options->mountpoint, strerror(errno));
  }
  return geteuid() == 0 ? mount_as_root(options, folder, device, reason) : mount_as_user(options, folder, device, reason);
}

bool mount_device(const struct options *options, struct mount *mount, char *text, size_t size)
{
  struct reason reason = {.text = text, .size = size};
  char folder[PATH_MAX];
  int device = options->device_fd;
  if (device >= 0) {
    /* The path is not checked: looking at it would ask the daemon, which waits for us. */
    snprintf(folder, sizeof folder, "%s", options->mountpoint);
  } else if (!make_mount(options, folder, &device, reason)) {
    return false;
  }
  struct table_entry entry;
  struct mount made;
  if (!find_new_mount(folder, device, &made, &entry)) {
    close(device);
    return refuse(reason, "cannot mount on %s: it was unmounted at the same time", folder);
  }
  if (covers_another(&entry)) {
    undo(&made);
    close(device);
    return refuse(reason, "cannot mount on %s: another mount was made there at the same time", folder);
  }
  *mount = made;
  return true;
}
