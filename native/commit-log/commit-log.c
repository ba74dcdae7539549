/*
 * A file system for SQLite (a VFS), on top of its own "unix-excl": the databases of a process belong to it alone, and a
 * commit is one write. The VFS knows the frames of a write-ahead log, and nothing of their content.
 *
 * Gathered writes: SQLite writes each page of a commit to the log with two calls, and a usual commit has two dozen
 * pages. That would be half a hundred system calls while a program waits. Here the frames are gathered, and written
 * together with the page that makes the commit. So all frames are in the log before SQLite reports the commit, and if
 * the disk does not take them, SQLite gets the error. A process that dies earlier leaves at most frames without a
 * commit, which readers of a log skip.
 *
 * No file locks: "unix-excl" keeps the index of the log in memory and needs no locks of the file system, which were
 * half of the remaining calls. Threads share a database as before. Another process gets the error "database is locked".
 * Only the holder of the state folder's lock opens the database.
 *
 * The VFS is loaded as an extension (metadata/commit-log.ts). From then on it is the default of the process. Format of
 * the log: https://www.sqlite.org/fileformat2.html#the_write_ahead_log.
 */
#include <sqlite3ext.h>
SQLITE_EXTENSION_INIT1

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#define FRAME_HEADER 24
/* In a frame's header, big-endian: the number of pages in the database after this commit. 0: the frame is no commit. */
#define PAGES_AT 4
#define PAGES_LENGTH 4
#define LARGEST_PAGE 65536
#define LARGEST_FRAME (FRAME_HEADER + LARGEST_PAGE)
/*
 * The largest amount that is gathered. A larger commit goes in parts. SQLite's "unix" takes lengths of at most 17 bits.
 */
#define GATHERED 131071
/* The lock of a log's index that the writer holds. */
#define WRITE_LOCK 0

/* The data of this VFS about a file. They follow the data of "unix-excl" in the file's memory. */
struct state {
  const sqlite3_io_methods *below;
  /* For a database its log, for a log its database. NULL: the other is not open. */
  sqlite3_file *other;
  /* For a log: consecutive frames that are not written yet, none of which is a commit. */
  unsigned char *gathered;
  int length;
  sqlite3_int64 start;
  /* The position behind the last frame of the present change; 0: there is no change. Writes before this position go to
   * the file at once: a frame's header without its page (checksums, at a commit after pages left the cache early), a
   * page without its header, or a frame in the place of one that was undone. */
  sqlite3_int64 end;
  /* The last write was a frame's header: its page comes next. */
  bool awaits_page;
  /* The page that comes next commits the gathered frames. */
  bool commits;
};

static sqlite3_vfs *below;
static sqlite3_vfs ours;
static sqlite3_io_methods database_methods, log_methods;

static struct state *state_of(sqlite3_file *file)
{
  return (struct state *)((char *)file + below->szOsFile);
}

/* Frames that cannot be written stay gathered: SQLite counts on them until it undoes them. */
static int write_gathered(sqlite3_file *file)
{
  struct state *log = state_of(file);
  if (log->length == 0) return SQLITE_OK;
  int result = log->below->xWrite(file, log->gathered, log->length, log->start);
  if (result == SQLITE_OK) log->length = 0;
  return result;
}

static void gather(struct state *log, const void *bytes, int count, sqlite3_int64 offset)
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

static int write_page(sqlite3_file *file, const void *bytes, int count, sqlite3_int64 offset)
{
  struct state *log = state_of(file);
  gather(log, bytes, count, offset);
  log->awaits_page = false;
  bool is_full = log->length > GATHERED - LARGEST_FRAME;
  if (!log->commits && !is_full) return SQLITE_OK;
  int result = write_gathered(file);
  /* For SQLite this frame was not written. It must not get into the log later, together with frames gathered then. */
  if (result != SQLITE_OK) {
    log->length -= FRAME_HEADER + count;
    log->end -= FRAME_HEADER + count;
  }
  return result;
}

static int log_write(sqlite3_file *file, const void *bytes, int count, sqlite3_int64 offset)
{
  struct state *log = state_of(file);
  bool follows = log->length > 0 && offset == log->end;
  if (follows && log->awaits_page && count <= LARGEST_PAGE) return write_page(file, bytes, count, offset);
  if (follows || log->length == 0) {
    if (count == FRAME_HEADER && offset >= log->end && log->length <= GATHERED - LARGEST_FRAME) {
      log->commits = is_commit(bytes);
      log->awaits_page = true;
      gather(log, bytes, count, offset);
      return SQLITE_OK;
    }
  }
  int result = write_gathered(file);
  if (result != SQLITE_OK) return result;
  if (offset + count > log->end) log->end = offset + count;
  return log->below->xWrite(file, bytes, count, offset);
}

/* Frames of an uncommitted change are read before the commit, and when the change is undone. */
static int log_read(sqlite3_file *file, void *bytes, int count, sqlite3_int64 offset)
{
  struct state *log = state_of(file);
  if (log->length > 0 && offset >= log->start && offset + count <= log->start + log->length) {
    memcpy(bytes, log->gathered + (offset - log->start), (size_t)count);
    return SQLITE_OK;
  }
  return log->below->xRead(file, bytes, count, offset);
}

static int log_truncate(sqlite3_file *file, sqlite3_int64 size)
{
  int result = write_gathered(file);
  return result == SQLITE_OK ? state_of(file)->below->xTruncate(file, size) : result;
}

static int log_sync(sqlite3_file *file, int flags)
{
  int result = write_gathered(file);
  return result == SQLITE_OK ? state_of(file)->below->xSync(file, flags) : result;
}

static int log_size(sqlite3_file *file, sqlite3_int64 *size)
{
  int result = write_gathered(file);
  return result == SQLITE_OK ? state_of(file)->below->xFileSize(file, size) : result;
}

static int log_close(sqlite3_file *file)
{
  struct state *log = state_of(file);
  sqlite3_free(log->gathered);
  state_of(log->other)->other = NULL;
  return log->below->xClose(file);
}

/*
 * A writer that releases the log has committed or undone. Frames that are still gathered were undone, and another
 * writer may write in their place. This does not work for a connection with locking_mode=EXCLUSIVE, which does not
 * report when it releases the log.
 */
static int database_lock_log(sqlite3_file *file, int first, int count, int flags)
{
  struct state *database = state_of(file);
  bool lets_go = (flags & SQLITE_SHM_UNLOCK) != 0 && (flags & SQLITE_SHM_EXCLUSIVE) != 0;
  if (lets_go && first == WRITE_LOCK && database->other != NULL) {
    struct state *log = state_of(database->other);
    log->length = 0;
    log->end = 0;
    log->awaits_page = false;
  }
  return database->below->xShmLock(file, first, count, flags);
}

/* "unix-excl" has one table of methods for databases and one for logs. */
static pthread_mutex_t tables = PTHREAD_MUTEX_INITIALIZER;

static const sqlite3_io_methods *with_ours(sqlite3_io_methods *table, const sqlite3_io_methods *methods, bool is_log)
{
  pthread_mutex_lock(&tables);
  if (table->iVersion == 0) {
    *table = *methods;
    if (is_log) {
      table->xClose = log_close;
      table->xRead = log_read;
      table->xWrite = log_write;
      table->xTruncate = log_truncate;
      table->xSync = log_sync;
      table->xFileSize = log_size;
    } else {
      table->xShmLock = database_lock_log;
    }
  }
  pthread_mutex_unlock(&tables);
  return table;
}

/* All files but databases and their logs are left to "unix-excl". */
static int open_file(sqlite3_vfs *vfs, sqlite3_filename name, sqlite3_file *file, int flags, int *opened)
{
  (void)vfs;
  bool is_log = (flags & SQLITE_OPEN_WAL) != 0;
  bool is_database = (flags & SQLITE_OPEN_MAIN_DB) != 0;
  if (!is_log && !is_database) return below->xOpen(below, name, file, flags, opened);

  file->pMethods = NULL;
  unsigned char *gathered = is_log ? sqlite3_malloc(GATHERED) : NULL;
  if (is_log && gathered == NULL) return SQLITE_NOMEM;
  int result = below->xOpen(below, name, file, flags, opened);
  if (result != SQLITE_OK) {
    sqlite3_free(gathered);
    return result;
  }
  struct state *state = state_of(file);
  memset(state, 0, sizeof *state);
  state->below = file->pMethods;
  state->gathered = gathered;
  if (is_log) {
    state->other = sqlite3_database_file_object(name);
    state_of(state->other)->other = file;
  }
  file->pMethods = with_ours(is_log ? &log_methods : &database_methods, file->pMethods, is_log);
  return SQLITE_OK;
}

static int registered = SQLITE_ERROR;

static void register_ours(void)
{
  below = sqlite3_vfs_find("unix-excl");
  if (below == NULL) return;
  ours = *below;
  ours.zName = "wsfs";
  ours.pNext = NULL;
  ours.szOsFile = below->szOsFile + (int)sizeof(struct state);
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
