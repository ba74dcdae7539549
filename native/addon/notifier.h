/*
 * Writes notifications to the device from threads of its own. Such a write may wait in the kernel for requests that
 * JavaScript has yet to answer, so neither the JavaScript thread nor libuv's pool may do it. There are two queues with
 * a thread each, so that a slow folder does not hold up file contents.
 *
 * A thread inside such a write cannot be killed. It has its own descriptor table with the device and the event loop's
 * eventfd, so that nothing else of a killed process stays open with it.
 *
 * The notifier also closes the device's descriptor. If threads cannot have their own table (before Linux 5.9), closing
 * the descriptor while a thread is inside write(2) would let its number be reused under the thread.
 */
#ifndef WSFS_NOTIFIER_H
#define WSFS_NOTIFIER_H

#include "addon.h"

#define NOTIFIER_QUEUES 2

struct notifier;

/* Called on the JavaScript thread when the notifier's handle has left the event loop. */
typedef void (*notifier_closed)(void *context);

/* NULL with errno set on failure. The descriptor then still belongs to the caller. */
struct notifier *notifier_open(napi_env env, napi_async_context async_context, napi_ref resource, int fd);
/* A promise of 0 or an errno: ECANCELED when the device was closed first. */
napi_value notifier_send(struct notifier *notifier, int queue, const uint8_t *data, size_t length);
/*
 * Settles every promise (unless the environment is going away) and closes the descriptor. A thread closes its own copy
 * when its write(2) returns; only then is the device closed.
 */
void notifier_close(struct notifier *notifier, bool settle, notifier_closed closed, void *context);

#endif
