/*
 * The fast path: moves bytes between the device and open local files without JavaScript. A READ or WRITE whose handle
 * has a lease is answered where it was read, on the same thread. So JavaScript never runs during one, and a lease that
 * it revokes is gone at once.
 *
 * The fast path knows only these two requests of the protocol, in their plainest form. Everything else (other flags, a
 * resent request, an error of the file, a write that did not fit) is left to JavaScript as a whole, as if nothing had
 * been tried: reading or writing the same bytes again does no harm.
 */
#ifndef WSFS_FAST_PATH_H
#define WSFS_FAST_PATH_H

#include "addon.h"
#include "splicer.h"

#define FAST_PATH_HANDLES 1024

struct fast_path {
  struct lease {
    uint64_t handle; /* 0: nobody has the lease; no handle has that number */
    int fd;
    bool reads;
    uint64_t writes_until; /* uv_hrtime */
  } leases[FAST_PATH_HANDLES];
  uint8_t *reply; /* header and bytes of the answer to a READ */
  size_t capacity;
  int device;
  struct splicer splicer;
  uint64_t off_until;     /* uv_hrtime: no fast path until then, the disk is slow */
  uint64_t no_disk_until; /* the same for bytes that must be read from the disk */
  uint64_t reads, writes; /* requests that were answered here */
};

/* device.c: that of a device that JavaScript holds. NULL: the value is no device, and an exception is pending. */
struct fast_path *fast_path_of(napi_env env, napi_value device);

bool fast_path_open(struct fast_path *fast_path, int device, size_t capacity);
void fast_path_close(struct fast_path *fast_path);

/* The number of times that this thread was blocked so far. Must be called before the first message of a wake. */
long fast_path_waits(void);

/*
 * The number of bytes moved, when the message was answered completely. 0: it is left to JavaScript. `waits`: the result
 * of fast_path_waits.
 */
size_t fast_path_answer(struct fast_path *fast_path, int device, const uint8_t *message, size_t length, long waits);

/* True if the READ was answered from the file: see splicer_answer. */
bool fast_path_answer_read(struct fast_path *fast_path, uint64_t unique, int fd, size_t size, off_t offset);

/*
 * The number of a handle determines its lease. A later handle takes the lease over, and JavaScript serves the earlier
 * one.
 */
void fast_path_grant_read(struct fast_path *fast_path, uint64_t handle, int fd);
void fast_path_grant_write(struct fast_path *fast_path, uint64_t handle, int fd, uint64_t nanoseconds);
void fast_path_revoke_reads(struct fast_path *fast_path, int fd);
void fast_path_revoke_writes(struct fast_path *fast_path, int fd);
void fast_path_end(struct fast_path *fast_path, uint64_t handle);

#endif
