/*
 * Answers GETXATTR of a name outside the "user." namespace where it was read, without JavaScript: no file has such a
 * name (src/engine/ops/attributes.ts). The kernel asks for security.capability before the first write to a file and at
 * each change of its owner. That is a fifth of all requests of an untar.
 *
 * A request that is not in its plainest form is left to JavaScript.
 */
#ifndef WSFS_REFUSALS_H
#define WSFS_REFUSALS_H

#include "addon.h"

/* False: the request is left to JavaScript. */
bool refuse_at_once(int device, const uint8_t *message, size_t length);

#endif
