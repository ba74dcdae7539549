/* The two headers of the kernel's protocol, as in src/fuse/: message.ts, reply-structs.ts. */
#ifndef WSFS_MESSAGES_H
#define WSFS_MESSAGES_H

#include <stdint.h>

#define RESENT (UINT64_C(1) << 63) /* in `unique`: the request is resent */

struct in_header {
  uint32_t len, opcode;
  uint64_t unique, nodeid;
  uint32_t uid, gid, pid;
  uint16_t total_extlen, padding;
};

struct out_header {
  uint32_t len;
  int32_t error;
  uint64_t unique;
};

#endif
