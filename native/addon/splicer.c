/* READ without a copy in this process. See splicer.h. */
#include "splicer.h"
#include "messages.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* The headers may be older than the kernel. */
#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif

#define PIPE_SIZE (1024 * 1024) /* allowed for every user who does not have many pipes */
#define LEAST (32 * 1024)       /* below this size the calls take longer than the copies */

struct cache_range {
  uint64_t offset, length;
};

struct cache_counts {
  uint64_t cached, dirty, writeback, evicted, recently_evicted;
};

static const struct splicer NONE = {.in = -1, .out = -1};

static void open_pipe(struct splicer *splicer)
{
  int ends[2];
  *splicer = NONE;
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0) return;
  *splicer = (struct splicer){.in = ends[1], .out = ends[0], .page = (size_t)sysconf(_SC_PAGESIZE)};
  int size = fcntl(splicer->in, F_SETPIPE_SZ, PIPE_SIZE);
  /* One page for the header, and one more because the bytes may not begin at a page boundary. */
  if (size > 0 && (size_t)size > 2 * splicer->page) splicer->room = (size_t)size - 2 * splicer->page;
}

void splicer_open(struct splicer *splicer, int device)
{
  struct stat stat;
  *splicer = NONE;
  if (fstat(device, &stat) == 0 && S_ISCHR(stat.st_mode)) open_pipe(splicer);
}

void splicer_close(struct splicer *splicer)
{
  if (splicer->in < 0) return;
  close(splicer->in);
  close(splicer->out);
  *splicer = NONE;
}

/* Makes a new pipe: bytes that are left in the old one would become part of the next answer. */
static bool give_up(struct splicer *splicer)
{
  splicer_close(splicer);
  open_pipe(splicer);
  return false;
}

/*
 * True if all bytes are in memory. Readahead brings the last page last, so that page must also be readable without a
 * wait.
 */
static bool is_in_memory(struct splicer *splicer, int fd, size_t size, off_t offset)
{
  struct cache_range range = {.offset = (uint64_t)offset, .length = size};
  struct cache_counts counts;
  if (syscall(SYS_cachestat, fd, &range, &counts, 0) < 0) {
    splicer->room = 0; /* the kernel cannot tell */
    return false;
  }
  uint64_t last = (uint64_t)offset + size - 1;
  if (counts.cached < last / splicer->page - (uint64_t)offset / splicer->page + 1) return false;
  uint8_t byte;
  const struct iovec place = {.iov_base = &byte, .iov_len = 1};
  return preadv2(fd, &place, 1, (off_t)last, RWF_NOWAIT) == 1;
}

/* Adds the bytes behind the header in the pipe. 0 or an errno. */
static int fill_pipe(const struct splicer *splicer, int fd, size_t size, off_t offset)
{
  for (size_t moved = 0; moved < size;) {
    ssize_t length = splice(fd, &offset, splicer->in, NULL, size - moved, SPLICE_F_NONBLOCK);
    if (length <= 0) return length == 0 ? ENODATA : errno; /* the file was truncated meanwhile */
    moved += (size_t)length;
  }
  return 0;
}

bool splicer_answer(struct splicer *splicer, int device, int fd, uint64_t unique, size_t size, off_t offset)
{
  struct stat stat;
  if (size < LEAST || size > splicer->room || fstat(fd, &stat) < 0 || offset >= stat.st_size) return false;
  if ((off_t)size > stat.st_size - offset) size = (size_t)(stat.st_size - offset);
  if (size < LEAST || !is_in_memory(splicer, fd, size, offset)) return false;

  const struct out_header out = {.len = (uint32_t)(sizeof out + size), .unique = unique};
  if (write(splicer->in, &out, sizeof out) != sizeof out) return give_up(splicer);
  int error = fill_pipe(splicer, fd, size, offset);
  if (error != 0) {
    give_up(splicer);
    if (error == EINVAL) splicer->room = 0; /* the file system cannot splice */
    return false;
  }
  if (splice(splicer->out, NULL, device, NULL, out.len, 0) == (ssize_t)out.len) return true;
  bool is_awaited = errno != ENOENT;
  give_up(splicer);
  return !is_awaited;
}
