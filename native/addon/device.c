/*
 * A message device on the event loop: /dev/fuse, or one end of a SOCK_SEQPACKET pair when a test plays the kernel. One
 * read(2) is one message, one write is one message. Each wake of the loop passes all waiting messages to JavaScript in
 * one call. A budget limits their number, so that timers and other descriptors get their turn under load.
 *
 * A program that gets its answer sends its next request some microseconds later. Waiting for it here costs less than a
 * wake of the loop. So after answers the device is polled for a moment more (the linger), as long as that mostly finds
 * a message.
 *
 * Requests that fast-path.h and refusals.h answer never reach JavaScript. Of the others, small messages are packed into
 * one slab per wake; JavaScript makes Buffers on it from pairs of (offset, length). Large messages (file contents) are
 * passed on in the memory they were read into.
 */
#include "addon.h"
#include "fast-path.h"
#include "notifier.h"
#include "refusals.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
#include <uv.h>

#define WAKE_MESSAGES 64
#define WAKE_BYTES (4 * 1024 * 1024)
#define SLAB_SIZE (64 * 1024)
#define SMALL_LENGTH (8 * 1024)   /* at most this long: copied into the slab */
#define GIVEN_LENGTH (256 * 1024) /* at least this long: passed on without a copy */
#define NOT_IN_SLAB UINT32_MAX
#define LINGER_NS 50000           /* about the time of a wake */
#define TURN_NS 200000            /* after this time all other handles of the loop get their turn */
#define LUCK_MAX 8                /* lingering that found nothing this many times in a row becomes rare: */
#define UNLUCKY_WAKES 32          /* once in this many wakes */

struct device {
  napi_env env;
  napi_async_context async_context;
  napi_async_cleanup_hook_handle cleanup;
  napi_ref resource, on_wake, on_end;
  napi_ref slab, spans;
  uint8_t *slab_data;
  size_t slab_used;
  uint32_t *spans_data; /* offset (or NOT_IN_SLAB) and length of each message of a wake */
  uint8_t *landing;     /* memory for the next message */
  size_t capacity;
  struct fast_path fast_path;
  int fd;
  uv_poll_t poll;
  struct notifier *notifier;
  bool reading, ended, closed;
  bool answered; /* a request was answered since may_linger last looked */
  unsigned luck, unlucky_wakes;
  uint64_t refusals; /* requests that refusals.h has answered */
  int handles;    /* handles of the event loop that are not closed yet */
  bool forgotten; /* JavaScript has dropped its reference */
};

struct wake {
  uint32_t count;   /* messages for JavaScript */
  uint32_t large_count;
  napi_value large; /* array of the Buffers that are not in the slab */
  bool found;       /* there was a message, for JavaScript or not */
  int end;          /* errno that ends the device, or 0 */
};

static void free_device(struct device *device)
{
  if (device->handles > 0 || !device->forgotten) return;
  free(device->landing);
  fast_path_close(&device->fast_path);
  free(device);
}

static void drop_references(struct device *device)
{
  napi_ref *references[] = {&device->resource, &device->on_wake, &device->on_end, &device->slab, &device->spans};
  for (size_t i = 0; i < sizeof references / sizeof references[0]; i++) {
    if (*references[i] != NULL) napi_delete_reference(device->env, *references[i]);
    *references[i] = NULL;
  }
  if (device->async_context != NULL) napi_async_destroy(device->env, device->async_context);
  device->async_context = NULL;
}

static void on_handle_closed(void *context)
{
  struct device *device = context;
  if (--device->handles > 0) return;
  drop_references(device);
  if (device->cleanup != NULL) napi_remove_async_cleanup_hook(device->cleanup);
  free_device(device);
}

static void on_poll_closed(uv_handle_t *handle)
{
  on_handle_closed(handle->data);
}

static void close_device(struct device *device, bool settle)
{
  if (device->closed) return;
  device->closed = true;
  device->reading = false;
  uv_poll_stop(&device->poll); /* before close(), or the loop would poll a reused number */
  uv_close((uv_handle_t *)&device->poll, on_poll_closed);
  notifier_close(device->notifier, settle, on_handle_closed, device);
}

static void on_environment_end(napi_async_cleanup_hook_handle handle, void *data)
{
  struct device *device = data;
  if (device->closed) return; /* the closing handles remove the hook */
  device->cleanup = handle;
  close_device(device, false);
}

static void on_forgotten(napi_env env, void *data, void *hint)
{
  (void)env;
  (void)hint;
  struct device *device = data;
  device->forgotten = true;
  free_device(device);
}

static void free_landing(napi_env env, void *data, void *hint)
{
  (void)env;
  (void)hint;
  free(data);
}

static bool renew_slab(struct device *device)
{
  napi_env env = device->env;
  napi_value slab;
  void *data;
  if (device->slab != NULL) napi_delete_reference(env, device->slab);
  device->slab = NULL;
  if (napi_create_arraybuffer(env, SLAB_SIZE, &data, &slab) != napi_ok) return false;
  if (napi_create_reference(env, slab, 1, &device->slab) != napi_ok) return false;
  device->slab_data = data;
  device->slab_used = 0;
  return true;
}

/* Moves the message out of `landing`. False: there is no memory for it. */
static bool keep_message(struct device *device, struct wake *wake, size_t length)
{
  uint32_t *span = device->spans_data + 2 * wake->count;
  span[1] = (uint32_t)length;
  if (length <= SMALL_LENGTH) {
    span[0] = (uint32_t)device->slab_used;
    memcpy(device->slab_data + device->slab_used, device->landing, length);
    device->slab_used += (length + 7) & ~(size_t)7;
  } else {
    napi_value buffer;
    if (wake->large == NULL && napi_create_array(device->env, &wake->large) != napi_ok) return false;
    if (length >= GIVEN_LENGTH) {
      if (napi_create_external_buffer(device->env, length, device->landing, free_landing, NULL, &buffer) != napi_ok) {
        return false;
      }
      device->landing = NULL;
    } else if (napi_create_buffer_copy(device->env, length, device->landing, NULL, &buffer) != napi_ok) {
      return false;
    }
    if (napi_set_element(device->env, wake->large, wake->large_count++, buffer) != napi_ok) return false;
    span[0] = NOT_IN_SLAB;
  }
  wake->count++;
  return true;
}

/*
 * Reads the waiting messages within the budget. When none waits, waits for one until `until` (uv_hrtime; 0: no wait).
 */
static void read_messages(struct device *device, struct wake *wake, uint64_t until)
{
  size_t bytes = 0;
  long waits = fast_path_waits();
  for (int tries = 0; tries < WAKE_MESSAGES && bytes < WAKE_BYTES; tries++) {
    if (SLAB_SIZE - device->slab_used < SMALL_LENGTH) {
      if (wake->count > 0) return; /* one slab per wake; the loop wakes us again at once */
      if (!renew_slab(device)) {
        wake->end = ENOMEM;
        return;
      }
    }
    if (device->landing == NULL && (device->landing = malloc(device->capacity)) == NULL) {
      wake->end = ENOMEM;
      return;
    }
    ssize_t length = read(device->fd, device->landing, device->capacity);
    if (length > 0) {
      wake->found = true;
      size_t moved = fast_path_answer(&device->fast_path, device->fd, device->landing, (size_t)length, waits);
      bool is_refused = moved == 0 && refuse_at_once(device->fd, device->landing, (size_t)length);
      bytes += moved > 0 ? moved : (size_t)length;
      if (is_refused) device->refusals++;
      if (is_refused || moved > 0) {
        device->answered = true;
        continue;
      }
      if (!keep_message(device, wake, (size_t)length)) {
        wake->end = ENOMEM;
        return;
      }
    } else if (length == 0) {
      wake->end = ENODEV; /* the other end of a socket pair is closed */
      return;
    } else if (errno == EAGAIN) {
      if (wake->found || uv_hrtime() >= until) return;
      tries--;
    } else if (errno != EINTR && errno != ENOENT && errno != EIO) {
      /* ENOENT and EIO concern a single request, which the kernel has handled. */
      wake->end = errno;
      return;
    }
  }
}

static void call(struct device *device, napi_ref function_reference, size_t count, napi_value *values)
{
  napi_env env = device->env;
  napi_value resource, function, exception;
  if (napi_get_reference_value(env, device->resource, &resource) != napi_ok) return;
  if (napi_get_reference_value(env, function_reference, &function) != napi_ok) return;
  if (napi_make_callback(env, device->async_context, resource, function, count, values, NULL) == napi_ok) return;
  if (napi_get_and_clear_last_exception(env, &exception) == napi_ok) napi_fatal_exception(env, exception);
}

static void on_readable(uv_poll_t *poll, int status, int events);

static void deliver(struct device *device, struct wake *wake)
{
  napi_env env = device->env;
  napi_value values[4];
  if (napi_get_reference_value(env, device->slab, &values[0]) != napi_ok) return;
  if (napi_get_reference_value(env, device->spans, &values[1]) != napi_ok) return;
  if (napi_create_uint32(env, wake->count, &values[2]) != napi_ok) return;
  values[3] = wake->large;
  if (values[3] == NULL && napi_create_array(env, &values[3]) != napi_ok) return;
  call(device, device->on_wake, 4, values);
}

/* Reads the waiting messages and passes them on. False: this wake is over. */
static bool take_messages(struct device *device, int status, uint64_t until)
{
  napi_env env = device->env;
  napi_handle_scope scope;
  if (napi_open_handle_scope(env, &scope) != napi_ok) return false;

  /* When a descriptor is in error, as the device is after an unmount, the loop stops its handle. read(2) then tells
   * which error it is. */
  struct wake wake = {0};
  read_messages(device, &wake, until);
  if (wake.end != 0) {
    device->ended = true;
    device->reading = false;
    uv_poll_stop(&device->poll);
  } else if (status < 0) {
    uv_poll_start(&device->poll, UV_READABLE, on_readable);
  }
  /* During these calls JavaScript may pause or close the device. */
  if (wake.count > 0) deliver(device, &wake);
  if (wake.end != 0 && !device->closed) {
    napi_value name;
    if (napi_create_string_utf8(env, errno_name(wake.end), NAPI_AUTO_LENGTH, &name) == napi_ok) {
      call(device, device->on_end, 1, &name);
    }
  }
  napi_close_handle_scope(env, scope);
  return wake.found && device->reading;
}

/* True if it is worth waiting for the next message. It is not while results of the thread pool are awaited. */
static bool may_linger(struct device *device)
{
  bool answered = device->answered;
  device->answered = false;
  if (!answered || device->poll.loop->active_reqs.count > 0) return false;
  return device->luck > 0 || ++device->unlucky_wakes % UNLUCKY_WAKES == 0;
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
  (void)events;
  struct device *device = poll->data;
  if (!take_messages(device, status, 0)) return;
  uint64_t now = uv_hrtime(), end = now + TURN_NS;
  for (; now < end && may_linger(device); now = uv_hrtime()) {
    bool found = take_messages(device, 0, now + LINGER_NS);
    if (found) device->luck = LUCK_MAX;
    else if (device->luck > 0) device->luck--;
    if (!found) return;
  }
}

/* Makes everything of the device that lives in JavaScript's memory. */
static bool make_references(struct device *device, napi_value on_wake, napi_value on_end)
{
  napi_env env = device->env;
  napi_value resource, name, memory, spans;
  void *data;
  if (napi_create_object(env, &resource) != napi_ok) return false;
  if (napi_create_string_utf8(env, "wsfs:device", NAPI_AUTO_LENGTH, &name) != napi_ok) return false;
  if (napi_create_arraybuffer(env, WAKE_MESSAGES * 2 * sizeof(uint32_t), &data, &memory) != napi_ok) return false;
  if (napi_create_typedarray(env, napi_uint32_array, WAKE_MESSAGES * 2, memory, 0, &spans) != napi_ok) return false;
  device->spans_data = data;
  return napi_async_init(env, resource, name, &device->async_context) == napi_ok &&
         napi_create_reference(env, resource, 1, &device->resource) == napi_ok &&
         napi_create_reference(env, spans, 1, &device->spans) == napi_ok &&
         napi_create_reference(env, on_wake, 1, &device->on_wake) == napi_ok &&
         napi_create_reference(env, on_end, 1, &device->on_end) == napi_ok && renew_slab(device);
}

/* openDevice(fd, bufferSize, onWake, onEnd): the descriptor belongs to the device from now on. Nothing is read yet. */
napi_value open_device(napi_env env, napi_callback_info info)
{
  napi_value values[4], result;
  int fd, capacity;
  if (!get_arguments(env, info, values, 4)) return NULL;
  if (!get_int(env, values[0], &fd) || !get_int(env, values[1], &capacity)) return NULL;
  int flags = fcntl(fd, F_GETFL);
  if (flags < 0) return throw_system_error(env, errno, "fcntl");
  if (capacity < SMALL_LENGTH) return throw_system_error(env, EINVAL, "openDevice");
  uv_loop_t *loop;
  CHECK(env, napi_get_uv_event_loop(env, &loop));

  struct device *device = calloc(1, sizeof *device);
  if (device == NULL) return throw_system_error(env, ENOMEM, "malloc");
  device->env = env;
  device->fd = fd;
  device->capacity = (size_t)capacity;
  device->luck = LUCK_MAX;
  if (!make_references(device, values[2], values[3])) {
    drop_references(device);
    free(device);
    throw_node_api_error(env);
    return NULL;
  }
  int error = fast_path_open(&device->fast_path, fd, device->capacity) ? 0 : ENOMEM;
  if (error == 0 && (fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)) error = errno;
  if (error == 0) error = -uv_poll_init(loop, &device->poll, fd);
  if (error != 0) {
    drop_references(device);
    fast_path_close(&device->fast_path);
    free(device);
    return throw_system_error(env, error, "openDevice");
  }
  device->poll.data = device;
  device->handles = 1;
  device->notifier = notifier_open(env, device->async_context, device->resource, fd);
  if (device->notifier == NULL || napi_create_external(env, device, on_forgotten, NULL, &result) != napi_ok) {
    error = device->notifier == NULL ? errno : ENOMEM;
    device->forgotten = true;
    device->closed = true;
    uv_close((uv_handle_t *)&device->poll, on_poll_closed);
    if (device->notifier != NULL) {
      device->handles++;
      notifier_close(device->notifier, false, on_handle_closed, device);
    }
    return throw_system_error(env, error, "openDevice");
  }
  device->handles++;
  napi_add_async_cleanup_hook(env, on_environment_end, device, &device->cleanup);
  return result;
}

static struct device *get_device(napi_env env, napi_value value)
{
  void *data = NULL;
  CHECK(env, napi_get_value_external(env, value, &data));
  return data;
}

/* deviceResume(device): starts reading. */
napi_value device_resume(napi_env env, napi_callback_info info)
{
  napi_value value;
  if (!get_arguments(env, info, &value, 1)) return NULL;
  struct device *device = get_device(env, value);
  if (device == NULL || device->closed || device->ended || device->reading) return make_undefined(env);
  int error = -uv_poll_start(&device->poll, UV_READABLE, on_readable);
  if (error != 0) return throw_system_error(env, error, "poll");
  device->reading = true;
  return make_undefined(env);
}

/* devicePause(device): new requests stay in the kernel until deviceResume. */
napi_value device_pause(napi_env env, napi_callback_info info)
{
  napi_value value;
  if (!get_arguments(env, info, &value, 1)) return NULL;
  struct device *device = get_device(env, value);
  if (device == NULL || device->closed || !device->reading) return make_undefined(env);
  uv_poll_stop(&device->poll);
  device->reading = false;
  return make_undefined(env);
}

/* deviceReply(device, parts): writes the parts as one message. 0 or an errno. Never sleeps. */
napi_value device_reply(napi_env env, napi_callback_info info)
{
  napi_value values[2];
  if (!get_arguments(env, info, values, 2)) return NULL;
  struct device *device = get_device(env, values[0]);
  if (device == NULL) return NULL;
  if (device->closed) return make_number(env, EBADF);

  struct iovec parts[IOV_MAX];
  uint32_t count;
  size_t total = 0;
  CHECK(env, napi_get_array_length(env, values[1], &count));
  if (count > IOV_MAX) return throw_system_error(env, EINVAL, "writev");
  for (uint32_t i = 0; i < count; i++) {
    napi_value part;
    uint8_t *data;
    size_t length;
    CHECK(env, napi_get_element(env, values[1], i, &part));
    if (!get_bytes(env, part, &data, &length)) return NULL;
    parts[i] = (struct iovec){.iov_base = data, .iov_len = length};
    total += length;
  }
  ssize_t written;
  do {
    written = writev(device->fd, parts, (int)count);
  } while (written < 0 && errno == EINTR);
  if (written < 0) return make_number(env, errno);
  device->answered = true;
  return make_number(env, (size_t)written == total ? 0 : EIO);
}

/* deviceNotify(device, queue, message): a promise of 0 or an errno. */
napi_value device_notify(napi_env env, napi_callback_info info)
{
  napi_value values[3];
  int queue;
  uint8_t *data;
  size_t length;
  if (!get_arguments(env, info, values, 3)) return NULL;
  struct device *device = get_device(env, values[0]);
  if (device == NULL || !get_int(env, values[1], &queue) || !get_bytes(env, values[2], &data, &length)) return NULL;
  if (queue < 0 || queue >= NOTIFIER_QUEUES) return throw_system_error(env, EINVAL, "notify");
  if (device->closed) {
    napi_deferred deferred;
    napi_value promise;
    CHECK(env, napi_create_promise(env, &deferred, &promise));
    CHECK(env, napi_resolve_deferred(env, deferred, make_number(env, ECANCELED)));
    return promise;
  }
  return notifier_send(device->notifier, queue, data, length);
}

struct fast_path *fast_path_of(napi_env env, napi_value value)
{
  struct device *device = get_device(env, value);
  return device == NULL ? NULL : &device->fast_path;
}

/* deviceAnswered(device): the numbers of READs, WRITEs and GETXATTRs that JavaScript did not see. */
napi_value device_answered(napi_env env, napi_callback_info info)
{
  napi_value value, result;
  if (!get_arguments(env, info, &value, 1)) return NULL;
  const struct device *device = get_device(env, value);
  if (device == NULL) return NULL;
  const uint64_t counts[] = {device->fast_path.reads, device->fast_path.writes, device->refusals};
  CHECK(env, napi_create_array(env, &result));
  for (uint32_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
    CHECK(env, napi_set_element(env, result, i, make_number(env, (double)counts[i])));
  }
  return result;
}

/* deviceClose(device): no callback comes after it. The descriptor is closed, see notifier.h. */
napi_value device_close(napi_env env, napi_callback_info info)
{
  napi_value value;
  if (!get_arguments(env, info, &value, 1)) return NULL;
  struct device *device = get_device(env, value);
  if (device == NULL) return NULL;
  close_device(device, true);
  return make_undefined(env);
}
