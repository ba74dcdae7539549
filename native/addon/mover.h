/*
 * Moves bytes between the device and open local files without JavaScript: a READ or WRITE whose
 * handle JavaScript has let pass is answered right where it was read, on the same thread. So
 * JavaScript never runs during one, and what it takes back it has back at once.
 *
 * It knows of the protocol the two requests in their plainest form. Whatever else comes (other
 * flags, a request sent again, an error of the file, a write that did not fit) is left to
 * JavaScript whole, as if nothing had been tried: to read or write the same bytes again does no harm.
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
  uint8_t *reply; /* header and bytes of a READ's answer */
  size_t capacity;
  struct splicer splicer;
  uint64_t off_until;     /* uv_hrtime: the disk is slow */
  uint64_t no_disk_until; /* the same, for what has to be read from it */
  uint64_t reads, writes; /* that were answered */
};

/* device.c: the one of a device that JavaScript holds; NULL: it is none, and an exception is pending. */
struct mover *mover_of(napi_env env, napi_value device);

bool mover_open(struct mover *mover, int device, size_t capacity);
void mover_close(struct mover *mover);

/* How often this thread has waited for anything: to be asked before the first message of a wake. */
long mover_waits(void);

/*
 * How many bytes came and went, when the message is answered with all that it asked for. 0: it is
 * JavaScript's. `waits`: what mover_waits said.
 */
size_t mover_answer(struct mover *mover, int device, const uint8_t *message, size_t length, long waits);

/* A handle's place follows from its number: who comes later takes it, and the other is served by JavaScript. */
void mover_let_read(struct mover *mover, uint64_t handle, int fd);
void mover_let_write(struct mover *mover, uint64_t handle, int fd, uint64_t nanoseconds);
void mover_stop_reading(struct mover *mover, int fd);
void mover_stop_writing(struct mover *mover, int fd);
void mover_end(struct mover *mover, uint64_t handle);

#endif
