/* See refusals.h. */
#include "refusals.h"
#include "messages.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Values of the protocol, as in src/fuse/: opcodes.ts, request-structs.ts. */
#define GETXATTR 22

struct getxattr_in {
  uint32_t size, padding;
};

#define NAME_AT (sizeof(struct in_header) + sizeof(struct getxattr_in))

static const char KEPT[] = "user.";

/* True if the name's only zero byte is the last byte of the message. */
static bool is_name(const uint8_t *name, size_t length)
{
  return length > 1 && memchr(name, '\0', length) == name + length - 1;
}

bool refuse_at_once(int device, const uint8_t *message, size_t length)
{
  struct in_header header;
  if (length <= NAME_AT) return false;
  memcpy(&header, message, sizeof header);
  if (header.opcode != GETXATTR || header.len != length || header.total_extlen != 0) return false;
  if (header.unique == 0 || (header.unique & RESENT) != 0) return false;
  const uint8_t *name = message + NAME_AT;
  if (!is_name(name, length - NAME_AT) || strncmp((const char *)name, KEPT, sizeof KEPT - 1) == 0) return false;

  const struct out_header out = {.len = sizeof out, .error = -EOPNOTSUPP, .unique = header.unique};
  ssize_t written;
  do {
    written = write(device, &out, sizeof out);
  } while (written < 0 && errno == EINTR);
  return written >= 0 || errno == ENOENT; /* ENOENT: nothing waits for the answer any more */
}
