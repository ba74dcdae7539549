/*
 * Answers right where it was read what has one answer whatever file it is about: GETXATTR of a name that is not in
 * the "user." space, of which no file has any (src/engine/ops/attributes.ts). The kernel asks for security.capability
 * before the first write to a file and at each change of its owner: a fifth of all that an untar asks.
 *
 * Whatever is not in its plainest form is left to JavaScript.
 */
#ifndef WSFS_REFUSALS_H
#define WSFS_REFUSALS_H

#include "addon.h"

/* False: it is JavaScript's. */
bool refuse_at_once(int device, const uint8_t *message, size_t length);

#endif
