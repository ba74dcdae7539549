/*
 * A file system for SQLite (a VFS), between it and its own "unix-excl": the databases of a process belong to it
 * alone, and a commit is one write. Knows the frames of a write-ahead log, and nothing of what is in them.
 *
 * - SQLite writes each page of a commit to the log by two calls, and a commit of ours has two dozen pages: half a
 *   hundred calls into the kernel, while a program waits. Here they are gathered, and the page that makes the
 *   commit takes them along. So what is in the log, is there before SQLite says that it is committed, and a disk
 *   that does not take it is told to SQLite as ever. A process that dies in between leaves frames without a commit,
 *   which a log is read without.
 * - "unix-excl" keeps the index of the log in memory, and needs no locks of the file system; half of the calls that
 *   were left were these. Threads share a database as ever. Another process is told that it is locked: who may open
 *   it is settled before, by the lock of the state folder.
 *
 * Loaded as an extension (metadata/commit-log.ts), and from then on the default of the process, for good.
 * Format of the log: https://www.sqlite.org/fileformat2.html#the_write_ahead_log.
 */
#include <sqlite3ext.h>
SQLITE_EXTENSION_INIT1

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#define LOG_HEADER 32
#define FRAME_HEADER 24
/* In a frame's header, big-endian: how many pages the database has after this commit. 0: it is none. */
#define PAGES_AT 4
#define PAGES_LENGTH 4
#define LARGEST_PAGE 65536
#define LARGEST_FRAME (FRAME_HEADER + LARGEST_PAGE)
/* What is gathered at most: a commit of more goes in parts. SQLite's "unix" takes no more than 17 bits of a length. */
#define GATHERED 131071

struct log_file {
  sqlite3_file base;
  /* Frames one behind the other, without their commit: in memory alone, as uncommitted pages are anyway. */
  unsigned char *gathered;
  int length;
  sqlite3_int64 start;
  /* Behind the last frame that was written here. A frame's header before it is one that SQLite writes once more
   * (checksums, at a commit after pages left the cache early), and no page follows it. */
  sqlite3_int64 end;
  /* What came last is a frame's header: its page comes next. */
  bool awaits_page;
  /* It is the last one of a commit. */
  bool commits;
  /* "unix-excl"'s file is in what follows. */
};

static sqlite3_vfs *below;
static sqlite3_vfs ours;

static sqlite3_file *file_below(sqlite3_file *file)
{
  return (sqlite3_file *)((struct log_file *)file + 1);
}

#define BELOW(file, method, ...) file_below(file)->pMethods->method(file_below(file), ##__VA_ARGS__)

static int write_gathered(sqlite3_file *file)
{
  struct log_file *log = (struct log_file *)file;
  int length = log->length;
  log->awaits_page = false;
  /* Also where it fails: SQLite undoes the change, and writes whatever comes next to this place. */
  log->length = 0;
  return length == 0 ? SQLITE_OK : BELOW(file, xWrite, log->gathered, length, log->start);
}

static void gather(struct log_file *log, const void *bytes, int count, sqlite3_int64 offset)
{
  if (log->length == 0) log->start = offset;
  memcpy(log->gathered + log->length, bytes, (size_t)count);
  log->length += count;
  log->end = offset + count;
}

static bool is_commit(const unsigned char *frame_header)
{
  static const unsigned char none[PAGES_LENGTH];
  return memcmp(frame_header + PAGES_AT, none, PAGES_LENGTH) != 0;
}

static int log_write(sqlite3_file *file, const void *bytes, int count, sqlite3_int64 offset)
{
  struct log_file *log = (struct log_file *)file;
  bool follows = log->length > 0 && offset == log->start + log->length;
  bool is_page = follows && log->awaits_page && count <= LARGEST_PAGE;
  if (is_page) {
    gather(log, bytes, count, offset);
    log->awaits_page = false;
    bool is_full = log->length > GATHERED - LARGEST_FRAME;
    return log->commits || is_full ? write_gathered(file) : SQLITE_OK;
  }
  int result = follows ? SQLITE_OK : write_gathered(file);
  if (result != SQLITE_OK) return result;
  if (count == FRAME_HEADER && offset >= log->end) {
    log->commits = is_commit(bytes);
    gather(log, bytes, count, offset);
    log->awaits_page = true;
    return SQLITE_OK;
  }
  result = write_gathered(file);
  if (result != SQLITE_OK) return result;
  bool begins_anew = offset == 0 && count == LOG_HEADER;
  if (begins_anew || offset + count > log->end) log->end = offset + count;
  return BELOW(file, xWrite, bytes, count, offset);
}

/* Whoever looks at the file finds all of it. */
#define AFTER_WHAT_IS_GATHERED(file, method, ...)                                                                       \
  int result = write_gathered(file);                                                                                    \
  return result == SQLITE_OK ? BELOW(file, method, ##__VA_ARGS__) : result

static int log_read(sqlite3_file *file, void *bytes, int count, sqlite3_int64 offset)
{
  AFTER_WHAT_IS_GATHERED(file, xRead, bytes, count, offset);
}

static int log_truncate(sqlite3_file *file, sqlite3_int64 size)
{
  AFTER_WHAT_IS_GATHERED(file, xTruncate, size);
}

static int log_sync(sqlite3_file *file, int flags)
{
  AFTER_WHAT_IS_GATHERED(file, xSync, flags);
}

static int log_size(sqlite3_file *file, sqlite3_int64 *size)
{
  AFTER_WHAT_IS_GATHERED(file, xFileSize, size);
}

static int log_control(sqlite3_file *file, int operation, void *argument)
{
  AFTER_WHAT_IS_GATHERED(file, xFileControl, operation, argument);
}

/* What is gathered has no commit. */
static int log_close(sqlite3_file *file)
{
  sqlite3_free(((struct log_file *)file)->gathered);
  return BELOW(file, xClose);
}

static int log_lock(sqlite3_file *file, int lock)
{
  return BELOW(file, xLock, lock);
}

static int log_unlock(sqlite3_file *file, int lock)
{
  return BELOW(file, xUnlock, lock);
}

static int log_is_reserved(sqlite3_file *file, int *is_reserved)
{
  return BELOW(file, xCheckReservedLock, is_reserved);
}

static int log_sector_size(sqlite3_file *file)
{
  return BELOW(file, xSectorSize);
}

static int log_characteristics(sqlite3_file *file)
{
  return BELOW(file, xDeviceCharacteristics);
}

static const sqlite3_io_methods log_methods = {
  .iVersion = 1,
  .xClose = log_close,
  .xRead = log_read,
  .xWrite = log_write,
  .xTruncate = log_truncate,
  .xSync = log_sync,
  .xFileSize = log_size,
  .xLock = log_lock,
  .xUnlock = log_unlock,
  .xCheckReservedLock = log_is_reserved,
  .xFileControl = log_control,
  .xSectorSize = log_sector_size,
  .xDeviceCharacteristics = log_characteristics,
};

/* Anything but a log is a file of "unix-excl" itself. */
static int open_file(sqlite3_vfs *vfs, sqlite3_filename name, sqlite3_file *file, int flags, int *opened)
{
  (void)vfs;
  if ((flags & SQLITE_OPEN_WAL) == 0) return below->xOpen(below, name, file, flags, opened);
  struct log_file *log = (struct log_file *)file;
  memset(log, 0, sizeof *log);
  log->gathered = sqlite3_malloc(GATHERED);
  if (log->gathered == NULL) return SQLITE_NOMEM;
  int result = below->xOpen(below, name, file_below(file), flags, opened);
  if (result == SQLITE_OK) log->base.pMethods = &log_methods;
  else sqlite3_free(log->gathered);
  return result;
}

static int registered = SQLITE_ERROR;

static void register_ours(void)
{
  below = sqlite3_vfs_find("unix-excl");
  if (below == NULL) return;
  ours = *below;
  ours.zName = "wsfs";
  ours.pNext = NULL;
  ours.szOsFile = (int)sizeof(struct log_file) + below->szOsFile;
  ours.xOpen = open_file;
  registered = sqlite3_vfs_register(&ours, 1);
}

__attribute__((visibility("default"))) int sqlite3_extension_init(sqlite3 *database, char **message,
                                                                  const sqlite3_api_routines *api)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  (void)database;
  SQLITE_EXTENSION_INIT2(api);
  pthread_once(&once, register_ours);
  if (registered == SQLITE_OK) return SQLITE_OK_LOAD_PERMANENTLY;
  *message = sqlite3_mprintf("SQLite has no \"unix-excl\" to build on");
  return registered;
}
