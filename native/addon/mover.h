/*
 * The fast path: moves bytes between the device and open local files without JavaScript. A READ or WRITE whose handle
 * has a lease is answered where it was read, on the same thread. So JavaScript never runs during one, and a lease that
 * it revokes is gone at once.
 *
 * It knows only these two requests of the protocol, in their plainest form. Everything else (other flags, a resent
 * request, an error of the file, a write that did not fit) is left to JavaScript as a whole, as if nothing had been
 * tried: reading or writing the same bytes again does no harm.
 */
#ifndef WSFS_MOVER_H
#define WSFS_MOVER_H

#include "addon.h"
#include "splicer.h"

#define MOVER_HANDLES 1024

struct mover {
  struct let {
    uint64_t handle; /* 0: a free place; no handle has that number */
    int fd;
    bool reads;
    uint64_t writes_until; /* uv_hrtime */
  } lets[MOVER_HANDLES];
  uint8_t *reply; /* header and bytes of the answer to a READ */
  size_t capacity;
  int device;
  struct splicer splicer;
  uint64_t off_until;     /* uv_hrtime: no fast path until then, the disk is slow */
  uint64_t no_disk_until; /* the same for bytes that must be read from the disk */
  uint64_t reads, writes; /* requests that were answered here */
};

/* device.c: the mover of a device that JavaScript holds. NULL: the value is no device, and an exception is pending. */
struct mover *mover_of(napi_env env, napi_value device);

bool mover_open(struct mover *mover, int device, size_t capacity);
void mover_close(struct mover *mover);

/* The number of times that this thread was blocked so far. Must be called before the first message of a wake. */
long mover_waits(void);

/*
 * The number of bytes moved, when the message was answered completely. 0: it is left to JavaScript. `waits`: the result
 * of mover_waits.
 */
size_t mover_answer(struct mover *mover, int device, const uint8_t *message, size_t length, long waits);

/* True if the READ was answered from the file: see splicer_answer. */
bool mover_answer_read(struct mover *mover, uint64_t unique, int fd, size_t size, off_t offset);

/*
 * The number of a handle determines its place. A later handle takes the place over, and JavaScript serves the earlier
 * one.
 */
void mover_grant_read(struct mover *mover, uint64_t handle, int fd);
void mover_grant_write(struct mover *mover, uint64_t handle, int fd, uint64_t nanoseconds);
void mover_revoke_reads(struct mover *mover, int fd);
void mover_revoke_writes(struct mover *mover, int fd);
void mover_end(struct mover *mover, uint64_t handle);

#endif
