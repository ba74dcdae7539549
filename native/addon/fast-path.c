/* The fast path: READ and WRITE without JavaScript. See fast-path.h. */
#include "fast-path.h"
#include "messages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include <uv.h>

/* Values of the protocol, as in src/fuse/: opcodes.ts, request-structs.ts, reply-structs.ts, flags.ts. */
#define READ 15
#define WRITE 16
#define WRITE_CACHE 1u
#define WRITE_LOCKOWNER 2u
#define WRITE_KILL_SUIDGID 4u /* for callers other than root; files with a lease have no such bits */
#define END_MAX (INT64_C(1) << 53) /* the largest number that JavaScript can count to */

/* The body of READ and WRITE. In a WRITE the data follow. */
struct transfer_in {
  uint64_t fh, offset;
  uint32_t size, transfer_flags;
  uint64_t lock_owner;
  uint32_t flags, padding;
};

struct write_out {
  uint32_t size, padding;
};

#define DATA_AT (sizeof(struct in_header) + sizeof(struct transfer_in))

/*
 * A call that waited this long for the disk has held up all other requests. For a hundred times that long, JavaScript's
 * thread pool does the reads and writes. So requests are held up for at most a hundredth of the time.
 */
#define SLOW_NS (2 * 1000 * 1000)
#define REST 100

/*
 * A few bytes that are not in memory are read right here if the disk is quick: handing them to JavaScript's thread pool
 * would take this thread as long. After a slower read, the thread pool does such reads for a while: for 2.5 times the
 * read's time after a read of 0.25 ms, ten times after 1 ms, and as above from SLOW_NS on.
 */
#define QUICK_NS (200 * 1000)
#define QUICK_SIZE (32 * 1024)

bool fast_path_open(struct fast_path *fast_path, int device, size_t capacity)
{
  memset(fast_path, 0, sizeof *fast_path);
  fast_path->capacity = capacity;
  fast_path->device = device;
  splicer_open(&fast_path->splicer, device);
  fast_path->reply = malloc(sizeof(struct out_header) + capacity);
  return fast_path->reply != NULL;
}

void fast_path_close(struct fast_path *fast_path)
{
  splicer_close(&fast_path->splicer);
  free(fast_path->reply);
  fast_path->reply = NULL;
}

static struct lease *lease_of(struct fast_path *fast_path, uint64_t handle)
{
  return &fast_path->leases[handle % FAST_PATH_HANDLES];
}

static struct lease *take_lease(struct fast_path *fast_path, uint64_t handle, int fd)
{
  struct lease *lease = lease_of(fast_path, handle);
  if (lease->handle != handle || lease->fd != fd) *lease = (struct lease){.handle = handle, .fd = fd};
  return lease;
}

void fast_path_grant_read(struct fast_path *fast_path, uint64_t handle, int fd)
{
  take_lease(fast_path, handle, fd)->reads = true;
}

void fast_path_grant_write(struct fast_path *fast_path, uint64_t handle, int fd, uint64_t nanoseconds)
{
  take_lease(fast_path, handle, fd)->writes_until = uv_hrtime() + nanoseconds;
}

void fast_path_revoke_reads(struct fast_path *fast_path, int fd)
{
  for (int i = 0; i < FAST_PATH_HANDLES; i++) {
    if (fast_path->leases[i].fd == fd) fast_path->leases[i].reads = false;
  }
}

void fast_path_revoke_writes(struct fast_path *fast_path, int fd)
{
  for (int i = 0; i < FAST_PATH_HANDLES; i++) {
    if (fast_path->leases[i].fd == fd) fast_path->leases[i].writes_until = 0;
  }
}

void fast_path_end(struct fast_path *fast_path, uint64_t handle)
{
  struct lease *lease = lease_of(fast_path, handle);
  if (lease->handle == handle) *lease = (struct lease){0};
}

long fast_path_waits(void)
{
  struct rusage usage;
  return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nvcsw : 0;
}

/* Ignores time in which another thread had the processor: it is no sign of a slow disk. */
static void notice_slowness(struct fast_path *fast_path, uint64_t begun, long waits)
{
  uint64_t now = uv_hrtime();
  if (now - begun >= SLOW_NS && fast_path_waits() != waits) fast_path->off_until = now + REST * (now - begun);
}

/* ENOENT: nothing waits for the answer any more. */
static bool reply(int device, const struct iovec *parts, int count)
{
  ssize_t written;
  do {
    written = writev(device, parts, count);
  } while (written < 0 && errno == EINTR);
  return written >= 0 || errno == ENOENT;
}

/* True if the file ends here. A read that is short for another reason (an error further on) must not be the answer: the
 * kernel would take zeros for the rest. */
static bool ends_at(int fd, off_t end)
{
  struct stat stat;
  return fstat(fd, &stat) == 0 && stat.st_size <= end;
}

static uint64_t rest_after(uint64_t took)
{
  return took < SLOW_NS ? 2 * took * took / QUICK_NS : REST * took;
}

static ssize_t read_from_disk(struct fast_path *fast_path, int fd, uint8_t *bytes, size_t size, off_t offset)
{
  uint64_t begun = uv_hrtime();
  if (size > QUICK_SIZE || begun < fast_path->no_disk_until) {
    errno = EAGAIN;
    return -1;
  }
  ssize_t length = pread(fd, bytes, size, offset);
  uint64_t now = uv_hrtime();
  if (now - begun >= QUICK_NS) fast_path->no_disk_until = now + rest_after(now - begun);
  return length;
}

/* When bytes would have to come from the disk and must not be waited for here, the read fails or is short. */
static ssize_t read_file(struct fast_path *fast_path, int fd, uint8_t *bytes, size_t size, off_t offset)
{
  const struct iovec place = {.iov_base = bytes, .iov_len = size};
  ssize_t length = preadv2(fd, &place, 1, offset, RWF_NOWAIT);
  if (length < 0 && errno == EAGAIN) return read_from_disk(fast_path, fd, bytes, size, offset);
  if (length >= 0 || errno != EOPNOTSUPP) return length;
  return pread(fd, bytes, size, offset); /* file systems that cannot tell, such as tmpfs and overlayfs */
}

static bool answer_read(struct fast_path *fast_path, int device, int fd, uint64_t unique, const struct transfer_in *in)
{
  if (in->size > fast_path->capacity) return false;
  if (splicer_answer(&fast_path->splicer, device, fd, unique, in->size, (off_t)in->offset)) return true;
  struct out_header *out = (struct out_header *)fast_path->reply;
  ssize_t length = read_file(fast_path, fd, fast_path->reply + sizeof *out, in->size, (off_t)in->offset);
  if (length < 0 || ((size_t)length < in->size && !ends_at(fd, (off_t)in->offset + length))) return false;
  *out = (struct out_header){.len = (uint32_t)(sizeof *out + (size_t)length), .unique = unique};
  return reply(device, &(struct iovec){.iov_base = fast_path->reply, .iov_len = out->len}, 1);
}

static bool answer_write(int device, int fd, uint64_t unique, const struct transfer_in *in, const uint8_t *data)
{
  if (pwrite(fd, data, in->size, (off_t)in->offset) != (ssize_t)in->size) return false;
  struct {
    struct out_header header;
    struct write_out body;
  } out = {.header = {.len = sizeof out, .unique = unique}, .body = {.size = in->size}};
  return reply(device, &(struct iovec){.iov_base = &out, .iov_len = sizeof out}, 1);
}

bool fast_path_answer_read(struct fast_path *fast_path, uint64_t unique, int fd, size_t size, off_t offset)
{
  return splicer_answer(&fast_path->splicer, fast_path->device, fd, unique, size, offset);
}

size_t fast_path_answer(struct fast_path *fast_path, int device, const uint8_t *message, size_t length, long waits)
{
  struct in_header header;
  struct transfer_in in;
  if (length < DATA_AT) return 0;
  memcpy(&header, message, sizeof header);
  if (header.opcode != READ && header.opcode != WRITE) return 0;
  memcpy(&in, message + sizeof header, sizeof in);
  const struct lease *lease = lease_of(fast_path, in.fh);
  if (in.fh == 0 || lease->handle != in.fh) return 0;
  if (header.len != length || header.unique == 0 || (header.unique & RESENT) != 0 || header.total_extlen != 0) return 0;
  if (in.size == 0 || in.offset >= (uint64_t)END_MAX - in.size) return 0;
  uint64_t now = uv_hrtime();
  if (now < fast_path->off_until) return 0;

  bool is_answered;
  if (header.opcode == READ) {
    if (!lease->reads || length != DATA_AT) return 0;
    is_answered = answer_read(fast_path, device, lease->fd, header.unique, &in);
    if (is_answered) fast_path->reads++;
  } else {
    if (now >= lease->writes_until || length != DATA_AT + in.size) return 0;
    if ((in.transfer_flags & ~(WRITE_CACHE | WRITE_LOCKOWNER | WRITE_KILL_SUIDGID)) != 0) return 0;
    is_answered = answer_write(device, lease->fd, header.unique, &in, message + DATA_AT);
    if (is_answered) fast_path->writes++;
  }
  notice_slowness(fast_path, now, waits);
  return is_answered ? DATA_AT + in.size : 0;
}
