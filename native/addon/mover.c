/* The fast path: READ and WRITE without JavaScript. See mover.h. */
#include "mover.h"
#include "messages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include <uv.h>

/* The same values as in src/fuse/: opcodes.ts, request-structs.ts, reply-structs.ts, flags.ts. */
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

bool mover_open(struct mover *mover, int device, size_t capacity)
{
  memset(mover, 0, sizeof *mover);
  mover->capacity = capacity;
  mover->device = device;
  splicer_open(&mover->splicer, device);
  mover->reply = malloc(sizeof(struct out_header) + capacity);
  return mover->reply != NULL;
}

void mover_close(struct mover *mover)
{
  splicer_close(&mover->splicer);
  free(mover->reply);
  mover->reply = NULL;
}

static struct let *place_of(struct mover *mover, uint64_t handle)
{
  return &mover->lets[handle % MOVER_HANDLES];
}

static struct let *take_place(struct mover *mover, uint64_t handle, int fd)
{
  struct let *let = place_of(mover, handle);
  if (let->handle != handle || let->fd != fd) *let = (struct let){.handle = handle, .fd = fd};
  return let;
}

void mover_grant_read(struct mover *mover, uint64_t handle, int fd)
{
  take_place(mover, handle, fd)->reads = true;
}

void mover_grant_write(struct mover *mover, uint64_t handle, int fd, uint64_t nanoseconds)
{
  take_place(mover, handle, fd)->writes_until = uv_hrtime() + nanoseconds;
}

void mover_revoke_reads(struct mover *mover, int fd)
{
  for (int i = 0; i < MOVER_HANDLES; i++) {
    if (mover->lets[i].fd == fd) mover->lets[i].reads = false;
  }
}

void mover_revoke_writes(struct mover *mover, int fd)
{
  for (int i = 0; i < MOVER_HANDLES; i++) {
    if (mover->lets[i].fd == fd) mover->lets[i].writes_until = 0;
  }
}

void mover_end(struct mover *mover, uint64_t handle)
{
  struct let *let = place_of(mover, handle);
  if (let->handle == handle) *let = (struct let){0};
}

long mover_waits(void)
{
  struct rusage usage;
  return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nvcsw : 0;
}

/* Ignores time in which another thread had the processor: it is no sign of a slow disk. */
static void notice_slowness(struct mover *mover, uint64_t begun, long waits)
{
  uint64_t now = uv_hrtime();
  if (now - begun >= SLOW_NS && mover_waits() != waits) mover->off_until = now + REST * (now - begun);
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

static ssize_t read_from_disk(struct mover *mover, int fd, uint8_t *bytes, size_t size, off_t offset)
{
  uint64_t begun = uv_hrtime();
  if (size > QUICK_SIZE || begun < mover->no_disk_until) {
    errno = EAGAIN;
    return -1;
  }
  ssize_t length = pread(fd, bytes, size, offset);
  uint64_t now = uv_hrtime();
  if (now - begun >= QUICK_NS) mover->no_disk_until = now + rest_after(now - begun);
  return length;
}

/* When bytes would have to come from the disk and must not be waited for here, the read fails or is short. */
static ssize_t read_file(struct mover *mover, int fd, uint8_t *bytes, size_t size, off_t offset)
{
  const struct iovec place = {.iov_base = bytes, .iov_len = size};
  ssize_t length = preadv2(fd, &place, 1, offset, RWF_NOWAIT);
  if (length < 0 && errno == EAGAIN) return read_from_disk(mover, fd, bytes, size, offset);
  if (length >= 0 || errno != EOPNOTSUPP) return length;
  return pread(fd, bytes, size, offset); /* file systems that cannot tell, such as tmpfs and overlayfs */
}

static bool answer_read(struct mover *mover, int device, int fd, uint64_t unique, const struct transfer_in *in)
{
  if (in->size > mover->capacity) return false;
  if (splicer_answer(&mover->splicer, device, fd, unique, in->size, (off_t)in->offset)) return true;
  struct out_header *out = (struct out_header *)mover->reply;
  ssize_t length = read_file(mover, fd, mover->reply + sizeof *out, in->size, (off_t)in->offset);
  if (length < 0 || ((size_t)length < in->size && !ends_at(fd, (off_t)in->offset + length))) return false;
  *out = (struct out_header){.len = (uint32_t)(sizeof *out + (size_t)length), .unique = unique};
  return reply(device, &(struct iovec){.iov_base = mover->reply, .iov_len = out->len}, 1);
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

bool mover_answer_read(struct mover *mover, uint64_t unique, int fd, size_t size, off_t offset)
{
  return splicer_answer(&mover->splicer, mover->device, fd, unique, size, offset);
}

size_t mover_answer(struct mover *mover, int device, const uint8_t *message, size_t length, long waits)
{
  struct in_header header;
  struct transfer_in in;
  if (length < DATA_AT) return 0;
  memcpy(&header, message, sizeof header);
  if (header.opcode != READ && header.opcode != WRITE) return 0;
  memcpy(&in, message + sizeof header, sizeof in);
  const struct let *let = place_of(mover, in.fh);
  if (in.fh == 0 || let->handle != in.fh) return 0;
  if (header.len != length || header.unique == 0 || (header.unique & RESENT) != 0 || header.total_extlen != 0) return 0;
  if (in.size == 0 || in.offset >= (uint64_t)END_MAX - in.size) return 0;
  uint64_t now = uv_hrtime();
  if (now < mover->off_until) return 0;

  bool is_answered;
  if (header.opcode == READ) {
    if (!let->reads || length != DATA_AT) return 0;
    is_answered = answer_read(mover, device, let->fd, header.unique, &in);
    if (is_answered) mover->reads++;
  } else {
    if (now >= let->writes_until || length != DATA_AT + in.size) return 0;
    if ((in.transfer_flags & ~(WRITE_CACHE | WRITE_LOCKOWNER | WRITE_KILL_SUIDGID)) != 0) return 0;
    is_answered = answer_write(device, let->fd, header.unique, &in, message + DATA_AT);
    if (is_answered) mover->writes++;
  }
  notice_slowness(mover, now, waits);
  return is_answered ? DATA_AT + in.size : 0;
}
