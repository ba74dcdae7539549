/*
 * Answers a READ with pages of the kernel's cache: splices them from the file into a pipe, and from there into the
 * device. The bytes are copied once. read(2) and writev(2) copy them twice, and look up the buffer's pages in between.
 *
 * The splicer handles only bytes that are in memory. All other reads are left as if nothing had been tried.
 */
#ifndef WSFS_SPLICER_H
#define WSFS_SPLICER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct splicer {
  int in, out; /* the ends of the pipe; -1: there is none */
  size_t room; /* the largest number of bytes in an answer */
  size_t page;
};

/* Never fails: a READ that cannot be spliced is copied. Only /dev/fuse takes the pieces of an answer as one message. */
void splicer_open(struct splicer *splicer, int device);
void splicer_close(struct splicer *splicer);

/* True: the request is answered, or nothing waits for the answer any more. */
bool splicer_answer(struct splicer *splicer, int device, int fd, uint64_t unique, size_t size, off_t offset);

#endif
