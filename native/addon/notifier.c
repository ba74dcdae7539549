/* See notifier.h. */
#include "notifier.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <uv.h>

/* Newer than the headers of many systems (Linux 5.9). */
#ifndef SYS_close_range
#define SYS_close_range 436 /* on every architecture but alpha */
#endif
#define UNSHARE_DESCRIPTORS (1U << 1) /* CLOSE_RANGE_UNSHARE */

struct note {
  struct note *next;
  napi_deferred deferred; /* used only by the JavaScript thread */
  int error;
  size_t length;
  uint8_t data[];
};

struct queue {
  struct notifier *notifier;
  struct note *first;
  struct note *last;
  struct note *writing;
  pthread_cond_t filled;
  bool running;
};

struct notifier {
  /* Used only by the JavaScript thread. */
  napi_env env;
  napi_async_context async_context;
  napi_ref resource;
  uv_poll_t completed; /* polls `wake` */
  size_t pending;
  notifier_closed closed_callback;
  void *closed_context;

  /* Everything below is used only under the lock. */
  pthread_mutex_t lock;
  struct queue queues[NOTIFIER_QUEUES];
  struct note *done;
  int fd;
  int wake;    /* eventfd that tells the event loop of `done`; with uv_async_t we would not know the descriptor */
  int writers; /* threads inside write(2) on descriptors that they share with JavaScript */
  bool closed;
  int references; /* the event loop's handle, and each running thread */
};

/* Unlocks. The last user frees it. */
static void release(struct notifier *notifier)
{
  bool last = --notifier->references == 0;
  pthread_mutex_unlock(&notifier->lock);
  if (!last) return;
  for (int i = 0; i < NOTIFIER_QUEUES; i++) pthread_cond_destroy(&notifier->queues[i].filled);
  pthread_mutex_destroy(&notifier->lock);
  free(notifier);
}

static int write_whole(int fd, const uint8_t *data, size_t length)
{
  ssize_t written;
  do {
    written = write(fd, data, length);
  } while (written < 0 && errno == EINTR);
  if (written < 0) return errno;
  return (size_t)written == length ? 0 : EIO;
}

/*
 * Writes one message or several. Each begins with its length, and the device takes one message per write. ENOENT (the
 * kernel does not know the name or inode) is normal among many, and tells least, so another error replaces it.
 */
static int write_messages(int fd, const uint8_t *data, size_t length)
{
  int result = 0;
  while (length > 0) {
    uint32_t own = 0;
    if (length >= sizeof own) memcpy(&own, data, sizeof own);
    /* A message without a valid length is written as it is. */
    size_t size = own < sizeof own || own > length ? length : own;
    int error = write_whole(fd, data, size);
    if (error != 0 && (result == 0 || result == ENOENT)) result = error;
    /* The connection is gone. */
    if (error == ENODEV || error == EBADF || error == EPIPE || error == ECONNABORTED) break;
    data += size;
    length -= size;
  }
  return result;
}

/*
 * Gives this thread a descriptor table of its own, with only these two descriptors. A thread inside the kernel cannot
 * be killed while it waits for the lock of a folder or page, whose holder may in turn wait for an answer of this
 * process. If the process were killed, everything that it shares with the thread would stay open, including its locks
 * and the socket to its supervisor. No successor could then take over and answer. False: the table is still shared (a
 * kernel before 5.9).
 */
static bool own_descriptors(int one, int other)
{
  unsigned low = (unsigned)(one < other ? one : other), high = (unsigned)(one < other ? other : one);
  if (syscall(SYS_close_range, high + 1, ~0U, UNSHARE_DESCRIPTORS) != 0) return false;
  if (low > 0) syscall(SYS_close_range, 0, low - 1, 0);
  if (low + 1 < high) syscall(SYS_close_range, low + 1, high - 1, 0);
  return true;
}

static void *run(void *argument)
{
  struct queue *queue = argument;
  struct notifier *notifier = queue->notifier;
  pthread_mutex_lock(&notifier->lock);
  int fd = notifier->fd, wake = notifier->wake;
  bool closed = notifier->closed;
  pthread_mutex_unlock(&notifier->lock);
  /* If the device was closed meanwhile, other files may have these numbers by now, so nothing is written. */
  bool shared = closed || !own_descriptors(fd, wake);
  pthread_mutex_lock(&notifier->lock);
  for (;;) {
    while (queue->first == NULL && !notifier->closed) pthread_cond_wait(&queue->filled, &notifier->lock);
    if (notifier->closed) break;
    struct note *note = queue->first;
    queue->first = note->next;
    if (queue->first == NULL) queue->last = NULL;
    queue->writing = note;
    if (shared) notifier->writers++;
    pthread_mutex_unlock(&notifier->lock);

    int error = write_messages(fd, note->data, note->length);

    pthread_mutex_lock(&notifier->lock);
    queue->writing = NULL;
    if (shared) notifier->writers--;
    note->error = error;
    if (!notifier->closed) {
      if (notifier->done == NULL) eventfd_write(wake, 1);
      note->next = notifier->done;
      notifier->done = note;
    } else {
      free(note); /* notifier_close has settled its promise */
      if (shared && notifier->writers == 0) close(fd);
    }
  }
  release(notifier);
  return NULL;
}

/* Settles and frees the whole list. Order does not matter, because each note has its own promise. */
static void settle(struct notifier *notifier, struct note *list)
{
  while (list != NULL) {
    struct note *note = list;
    list = note->next;
    napi_value result;
    if (napi_create_int32(notifier->env, note->error, &result) == napi_ok) {
      napi_resolve_deferred(notifier->env, note->deferred, result);
    }
    free(note);
  }
}

static void on_completed(uv_poll_t *handle, int status, int events)
{
  (void)status;
  (void)events;
  struct notifier *notifier = handle->data;
  eventfd_t count;
  pthread_mutex_lock(&notifier->lock);
  eventfd_read(notifier->wake, &count); /* under the lock: a thread that finds the list empty writes again */
  struct note *done = notifier->done;
  notifier->done = NULL;
  pthread_mutex_unlock(&notifier->lock);
  for (struct note *note = done; note != NULL; note = note->next) {
    if (--notifier->pending == 0) uv_unref((uv_handle_t *)&notifier->completed);
  }
  /* Closing the callback scope runs the reactions of the promises. */
  napi_handle_scope handles;
  napi_callback_scope scope;
  napi_value resource;
  if (napi_open_handle_scope(notifier->env, &handles) != napi_ok) return;
  if (napi_get_reference_value(notifier->env, notifier->resource, &resource) == napi_ok &&
      napi_open_callback_scope(notifier->env, resource, notifier->async_context, &scope) == napi_ok) {
    napi_env env = notifier->env;
    settle(notifier, done);
    napi_close_callback_scope(env, scope);
    napi_close_handle_scope(env, handles);
    return;
  }
  napi_close_handle_scope(notifier->env, handles);
}

struct notifier *notifier_open(napi_env env, napi_async_context async_context, napi_ref resource, int fd)
{
  uv_loop_t *loop;
  if (napi_get_uv_event_loop(env, &loop) != napi_ok) {
    errno = EINVAL;
    return NULL;
  }
  struct notifier *notifier = calloc(1, sizeof *notifier);
  if (notifier == NULL) return NULL;
  notifier->env = env;
  notifier->async_context = async_context;
  notifier->resource = resource;
  notifier->fd = fd;
  notifier->references = 1;
  notifier->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  int error = notifier->wake < 0 ? -errno : uv_poll_init(loop, &notifier->completed, notifier->wake);
  if (error != 0) {
    if (notifier->wake >= 0) close(notifier->wake);
    free(notifier);
    errno = -error;
    return NULL;
  }
  notifier->completed.data = notifier;
  uv_poll_start(&notifier->completed, UV_READABLE, on_completed); /* fails only for a handle that is closing */
  uv_unref((uv_handle_t *)&notifier->completed);
  pthread_mutex_init(&notifier->lock, NULL);
  for (int i = 0; i < NOTIFIER_QUEUES; i++) {
    notifier->queues[i].notifier = notifier;
    pthread_cond_init(&notifier->queues[i].filled, NULL);
  }
  return notifier;
}

/* Called under the lock. The thread takes no signals, because those are for the JavaScript thread. */
static int start_thread(struct queue *queue)
{
  sigset_t all, before;
  pthread_attr_t attributes;
  pthread_t thread;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, 128 * 1024);
  int error = pthread_create(&thread, &attributes, run, queue);
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (error == 0) {
    pthread_setname_np(thread, "wsfs-notify");
    queue->running = true;
    queue->notifier->references++;
  }
  return error;
}

napi_value notifier_send(struct notifier *notifier, int number, const uint8_t *data, size_t length)
{
  napi_env env = notifier->env;
  struct note *note = malloc(sizeof *note + length);
  if (note == NULL) return throw_system_error(env, ENOMEM, "malloc");
  note->next = NULL;
  note->error = 0;
  note->length = length;
  memcpy(note->data, data, length);
  napi_value promise;
  if (napi_create_promise(env, &note->deferred, &promise) != napi_ok) {
    free(note);
    throw_node_api_error(env);
    return NULL;
  }

  struct queue *queue = &notifier->queues[number];
  pthread_mutex_lock(&notifier->lock);
  int error = queue->running ? 0 : start_thread(queue);
  if (error == 0) {
    if (queue->last != NULL) queue->last->next = note;
    else queue->first = note;
    queue->last = note;
    pthread_cond_signal(&queue->filled);
  }
  pthread_mutex_unlock(&notifier->lock);
  if (error != 0) {
    note->error = error;
    settle(notifier, note);
  } else if (notifier->pending++ == 0) {
    uv_ref((uv_handle_t *)&notifier->completed);
  }
  return promise;
}

static void on_handle_closed(uv_handle_t *handle)
{
  struct notifier *notifier = handle->data;
  notifier->closed_callback(notifier->closed_context);
  pthread_mutex_lock(&notifier->lock);
  release(notifier);
}

static void cancel(struct notifier *notifier, napi_deferred deferred)
{
  napi_value result;
  if (napi_create_int32(notifier->env, ECANCELED, &result) == napi_ok) {
    napi_resolve_deferred(notifier->env, deferred, result);
  }
}

void notifier_close(struct notifier *notifier, bool settle_promises, notifier_closed closed, void *context)
{
  notifier->closed_callback = closed;
  notifier->closed_context = context;
  struct note *canceled = NULL;
  napi_deferred writing[NOTIFIER_QUEUES] = {NULL};

  pthread_mutex_lock(&notifier->lock);
  notifier->closed = true;
  for (int i = 0; i < NOTIFIER_QUEUES; i++) {
    struct queue *queue = &notifier->queues[i];
    while (queue->first != NULL) {
      struct note *note = queue->first;
      queue->first = note->next;
      note->error = ECANCELED;
      note->next = canceled;
      canceled = note;
    }
    queue->last = NULL;
    if (queue->writing != NULL) writing[i] = queue->writing->deferred;
    pthread_cond_signal(&queue->filled);
  }
  struct note *done = notifier->done;
  notifier->done = NULL;
  if (notifier->writers == 0) close(notifier->fd);
  pthread_mutex_unlock(&notifier->lock);

  if (settle_promises) {
    settle(notifier, done);
    settle(notifier, canceled);
    for (int i = 0; i < NOTIFIER_QUEUES; i++) {
      if (writing[i] != NULL) cancel(notifier, writing[i]);
    }
  } else {
    while (done != NULL) {
      struct note *note = done;
      done = note->next;
      free(note);
    }
    while (canceled != NULL) {
      struct note *note = canceled;
      canceled = note->next;
      free(note);
    }
  }
  uv_close((uv_handle_t *)&notifier->completed, on_handle_closed);
  close(notifier->wake); /* after the loop has let go of it; once closed, no thread writes to it */
}
