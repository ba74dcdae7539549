/*
 * The mounts of this machine, read from /proc/self/mountinfo. Looking at a mounted folder itself would send the daemon
 * a request. The numbers in that table are given to the next mount as soon as one is gone, so they alone do not prove
 * that a mount is ours.
 */
#include "supervisor.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Space, tab, newline and backslash are written as \040 and so on. */
static void unescape(char *text)
{
  char *to = text;
  for (const char *from = text; *from != '\0';) {
    if (from[0] == '\\' && from[1] >= '0' && from[1] <= '3' && from[2] != '\0' && from[3] != '\0') {
      *to++ = (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 + (from[3] - '0'));
      from += 4;
    } else {
      *to++ = *from++;
    }
  }
  *to = '\0';
}

struct line {
  struct table_entry entry;
  unsigned major;
  bool wsfs;
};

static bool parse(char *text, struct line *line)
{
  int path_start = 0, path_end = 0, id;
  if (sscanf(text, "%d %*d %u:%u %*s %n%*s%n", &id, &line->major, &line->entry.minor, &path_start, &path_end) < 3 ||
      path_end == 0 || path_end - path_start >= PATH_MAX) {
    return false;
  }
  line->entry.id = id;
  memcpy(line->entry.path, text + path_start, (size_t)(path_end - path_start));
  line->entry.path[path_end - path_start] = '\0';
  unescape(line->entry.path);
  const char *type = strstr(text + path_end, " - ");
  line->wsfs = type != NULL && strncmp(type + 3, "fuse.wsfs ", 10) == 0;
  return true;
}

/* Calls back for each mount, in the order in which they were made, until `visit` returns false. */
static void each_mount(bool (*visit)(const struct line *line, void *context), void *context)
{
  FILE *file = fopen("/proc/self/mountinfo", "re");
  if (file == NULL) return;
  char *text = NULL;
  size_t size = 0;
  struct line *line = malloc(sizeof *line);
  bool more = line != NULL;
  while (more && getline(&text, &size, file) > 0) {
    if (parse(text, line)) more = visit(line, context);
  }
  free(line);
  free(text);
  fclose(file);
}

struct search {
  const char *path;
  unsigned connection;
  const struct mount *mount;
  struct table_entry *entry;
  bool found;
};

/* The last mount made at a path is the visible one. */
static bool visit_at(const struct line *line, void *context)
{
  struct search *search = context;
  if (strcmp(line->entry.path, search->path) != 0) return true;
  search->found = line->wsfs;
  if (line->wsfs) *search->entry = line->entry;
  return true;
}

static bool visit_of_connection(const struct line *line, void *context)
{
  struct search *search = context;
  if (line->major != 0 || line->entry.minor != search->connection) return true;
  *search->entry = line->entry;
  search->found = true;
  return false;
}

static bool visit_ours(const struct line *line, void *context)
{
  struct search *search = context;
  if (line->entry.id != search->mount->id) return true;
  if (line->major != 0 || line->entry.minor != search->mount->connection || !line->wsfs) return false;
  *search->entry = line->entry;
  search->found = true;
  return false;
}

/* True if the first mount made at the path is another one. */
static bool visit_first_at(const struct line *line, void *context)
{
  struct search *search = context;
  if (strcmp(line->entry.path, search->entry->path) != 0) return true;
  search->found = line->entry.id != search->entry->id;
  return false;
}

bool find_mount_at(const char *path, struct table_entry *entry)
{
  struct search search = {.path = path, .entry = entry};
  each_mount(visit_at, &search);
  return search.found;
}

bool find_mount_of(unsigned connection, struct table_entry *entry)
{
  struct search search = {.connection = connection, .entry = entry};
  each_mount(visit_of_connection, &search);
  return search.found;
}

struct list {
  unsigned connection;
  int *ids;
  size_t size, count;
};

static bool visit_listed(const struct line *line, void *context)
{
  struct list *list = context;
  if (line->major == 0 && line->entry.minor == list->connection) list->ids[list->count++] = line->entry.id;
  return list->count < list->size;
}

size_t list_mounts_of(unsigned connection, int *ids, size_t size)
{
  struct list list = {.connection = connection, .ids = ids, .size = size};
  each_mount(visit_listed, &list);
  return list.count;
}

bool covers_another(const struct table_entry *entry)
{
  struct table_entry copy = *entry;
  struct search search = {.entry = &copy};
  each_mount(visit_first_at, &search);
  return search.found;
}

bool find_our_mount(const struct mount *mount, struct table_entry *entry)
{
  if (mount->unique != 0) {
    int error = find_mount_by_unique_id(mount->unique, entry);
    if (error == 0 || error == ENOENT) return error == 0;
  }
  struct search search = {.mount = mount, .entry = entry};
  each_mount(visit_ours, &search);
  /* Checked after the table was read: if the device is still connected, the mount in the table was ours. */
  return search.found && (mount->device < 0 || is_connected(mount->device));
}

bool is_connected(int device)
{
  struct pollfd source = {.fd = device};
  int count;
  do {
    count = poll(&source, 1, 0);
  } while (count < 0 && errno == EINTR);
  return (source.revents & (POLLERR | POLLHUP | POLLNVAL)) == 0;
}
