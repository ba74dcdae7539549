/*
 * Mounts by their unique id, which the kernel tells by statx(2) and statmount(2). The other numbers of a mount, those
 * in mountinfo, are given to the next mount as soon as it is gone.
 */
#include "supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Newer than the headers of many systems. */
#ifndef STATX_MNT_ID_UNIQUE
#define STATX_MNT_ID_UNIQUE 0x4000U
#endif
#ifndef SYS_statmount
#define SYS_statmount 457 /* on every architecture but alpha */
#endif

struct request {
  uint32_t size;
  uint32_t spare;
  uint64_t unique;
  uint64_t mask;
};
#define REQUEST_SIZE 24 /* as of the first kernel that has the call */
#define MASK_SUPER_BLOCK 0x1U
#define MASK_MOUNT 0x2U
#define MASK_PATH 0x10U
#define MASK_NEEDED (MASK_SUPER_BLOCK | MASK_MOUNT | MASK_PATH)

struct answer {
  uint32_t size;
  uint32_t options;
  uint64_t mask;
  uint32_t device_major, device_minor;
  uint64_t magic;
  uint32_t super_flags, type;
  uint64_t unique, parent_unique;
  uint32_t id, parent_id;
  uint64_t attributes, propagation, peer_group, master, propagate_from;
  uint32_t root, path; /* offsets into `texts` */
  uint64_t spare[50];
  char texts[2 * PATH_MAX];
};
_Static_assert(offsetof(struct answer, texts) == 512, "as linux/mount.h has it");

uint64_t unique_id_at(const char *path)
{
  struct statx status;
  /* The kernel must answer without a request to the daemon: a mount that was just made does not serve yet. */
  int flags = AT_NO_AUTOMOUNT | AT_SYMLINK_NOFOLLOW | AT_STATX_DONT_SYNC;
  if (statx(AT_FDCWD, path, flags, STATX_MNT_ID_UNIQUE, &status) < 0) return 0;
  if ((status.stx_mask & STATX_MNT_ID_UNIQUE) == 0) return 0;
  /* The structure has the field under its old name. */
  uint64_t unique;
  memcpy(&unique, &status.stx_mnt_id, sizeof unique);
  return unique;
}

int find_mount_by_unique_id(uint64_t unique, struct table_entry *entry)
{
  struct request request = {.size = REQUEST_SIZE, .unique = unique, .mask = MASK_NEEDED};
  struct answer *answer = calloc(1, sizeof *answer);
  if (answer == NULL) return ENOMEM;
  int error = 0;
  if (syscall(SYS_statmount, &request, answer, sizeof *answer, 0) < 0) error = errno;
  else if ((answer->mask & MASK_NEEDED) != MASK_NEEDED) error = EOPNOTSUPP;
  else if (answer->path >= sizeof answer->texts) error = EOVERFLOW;
  if (error == 0) {
    entry->id = (int)answer->id;
    entry->minor = answer->device_minor;
    const char *path = answer->texts + answer->path;
    size_t length = strnlen(path, PATH_MAX - 1);
    memcpy(entry->path, path, length);
    entry->path[length] = '\0';
  }
  free(answer);
  return error;
}
