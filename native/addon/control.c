/*
 * The control socket between the supervisor and the daemon: SOCK_SEQPACKET. A message is a line of text, and may carry
 * one descriptor (SCM_RIGHTS). This file does not know what the lines say.
 */
#include "addon.h"

#include "../socket-message.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#define LINE_LENGTH 4096

struct control {
  napi_env env;
  napi_async_context async_context;
  napi_async_cleanup_hook_handle cleanup;
  napi_ref resource, on_line, on_end;
  int fd;
  uv_poll_t poll;
  bool closed, handle_closed, forgotten;
};

static void release(struct control *control)
{
  if (control->handle_closed && control->forgotten) free(control);
}

static void drop_references(struct control *control)
{
  napi_ref *references[] = {&control->resource, &control->on_line, &control->on_end};
  for (size_t i = 0; i < sizeof references / sizeof references[0]; i++) {
    if (*references[i] != NULL) napi_delete_reference(control->env, *references[i]);
    *references[i] = NULL;
  }
  if (control->async_context != NULL) napi_async_destroy(control->env, control->async_context);
  control->async_context = NULL;
}

static void on_handle_closed(uv_handle_t *handle)
{
  struct control *control = handle->data;
  drop_references(control);
  if (control->cleanup != NULL) napi_remove_async_cleanup_hook(control->cleanup);
  control->handle_closed = true;
  release(control);
}

static void close_control(struct control *control)
{
  if (control->closed) return;
  control->closed = true;
  uv_poll_stop(&control->poll);
  uv_close((uv_handle_t *)&control->poll, on_handle_closed);
  close(control->fd);
}

static void on_environment_end(napi_async_cleanup_hook_handle handle, void *data)
{
  struct control *control = data;
  if (control->closed) return;
  control->cleanup = handle;
  close_control(control);
}

static void on_forgotten(napi_env env, void *data, void *hint)
{
  (void)env;
  (void)hint;
  struct control *control = data;
  control->forgotten = true;
  release(control);
}

static void call(struct control *control, napi_ref function_reference, size_t count, napi_value *values)
{
  napi_env env = control->env;
  napi_value resource, function, exception;
  if (napi_get_reference_value(env, control->resource, &resource) != napi_ok) return;
  if (napi_get_reference_value(env, function_reference, &function) != napi_ok) return;
  if (napi_make_callback(env, control->async_context, resource, function, count, values, NULL) == napi_ok) return;
  if (napi_get_and_clear_last_exception(env, &exception) == napi_ok) napi_fatal_exception(env, exception);
}

/* Passes on one line, or the end. False: there is neither, or the end was reached, or the socket was closed. */
static bool hand_on(struct control *control)
{
  napi_env env = control->env;
  char line[LINE_LENGTH];
  int descriptor = -1;
  int length = receive_message(control->fd, MSG_DONTWAIT, line, sizeof line, &descriptor);
  if (length == -EAGAIN) return false;
  napi_handle_scope scope;
  if (napi_open_handle_scope(env, &scope) != napi_ok) return false;
  if (length > 0) {
    napi_value values[2];
    if (napi_create_string_utf8(env, line, (size_t)length, &values[0]) == napi_ok &&
        napi_create_int32(env, descriptor, &values[1]) == napi_ok) {
      call(control, control->on_line, 2, values);
    }
  } else {
    uv_poll_stop(&control->poll);
    call(control, control->on_end, 0, NULL);
  }
  napi_close_handle_scope(env, scope);
  return length > 0 && !control->closed;
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
  (void)events;
  struct control *control = poll->data;
  /* After an error libuv stops polling, so everything that waits is read now. */
  while (hand_on(control) && status < 0) continue;
}

/* openControl(fd, onLine(text, descriptor or -1), onEnd()): the descriptor belongs to the control from now on. */
napi_value open_control(napi_env env, napi_callback_info info)
{
  napi_value values[3], resource, name, result;
  int fd;
  if (!get_arguments(env, info, values, 3) || !get_int(env, values[0], &fd)) return NULL;
  uv_loop_t *loop;
  CHECK(env, napi_get_uv_event_loop(env, &loop));
  CHECK(env, napi_create_object(env, &resource));
  CHECK(env, napi_create_string_utf8(env, "wsfs:control", NAPI_AUTO_LENGTH, &name));
  struct control *control = calloc(1, sizeof *control);
  if (control == NULL) return throw_system_error(env, ENOMEM, "malloc");
  control->env = env;
  control->fd = fd;
  bool made = napi_async_init(env, resource, name, &control->async_context) == napi_ok &&
              napi_create_reference(env, resource, 1, &control->resource) == napi_ok &&
              napi_create_reference(env, values[1], 1, &control->on_line) == napi_ok &&
              napi_create_reference(env, values[2], 1, &control->on_end) == napi_ok;
  int error = made ? 0 : ENOMEM;
  if (error == 0 && fcntl(fd, F_SETFD, FD_CLOEXEC) < 0) error = errno;
  if (error == 0) error = -uv_poll_init(loop, &control->poll, fd);
  if (error != 0) {
    drop_references(control);
    free(control);
    return throw_system_error(env, error, "openControl");
  }
  control->poll.data = control;
  error = -uv_poll_start(&control->poll, UV_READABLE, on_readable);
  if (error != 0 || napi_create_external(env, control, on_forgotten, NULL, &result) != napi_ok) {
    control->forgotten = true;
    close_control(control);
    return throw_system_error(env, error != 0 ? error : ENOMEM, "openControl");
  }
  napi_add_async_cleanup_hook(env, on_environment_end, control, &control->cleanup);
  return result;
}

/* controlSend(control, line, descriptor or -1): 0 or an errno. EAGAIN when the other end does not read. */
napi_value control_send(napi_env env, napi_callback_info info)
{
  napi_value values[3];
  void *data;
  int descriptor;
  if (!get_arguments(env, info, values, 3)) return NULL;
  CHECK(env, napi_get_value_external(env, values[0], &data));
  struct control *control = data;
  if (!get_int(env, values[2], &descriptor)) return NULL;
  char *line = get_text(env, values[1]);
  if (line == NULL) return NULL;
  if (control->closed) {
    free(line);
    return make_number(env, EPIPE);
  }
  int error = send_message(control->fd, line, descriptor);
  free(line);
  return make_number(env, error);
}

/* controlClose(control): no callback comes after it. */
napi_value control_close(napi_env env, napi_callback_info info)
{
  napi_value value;
  void *data;
  if (!get_arguments(env, info, &value, 1)) return NULL;
  CHECK(env, napi_get_value_external(env, value, &data));
  close_control(data);
  return make_undefined(env);
}

/* receiveDescriptor(fd): [line, descriptor or -1], or undefined at the end. Blocks. */
napi_value receive_descriptor(napi_env env, napi_callback_info info)
{
  napi_value value, line, number, result;
  int fd, descriptor;
  char text[LINE_LENGTH];
  if (!get_arguments(env, info, &value, 1) || !get_int(env, value, &fd)) return NULL;
  int length = receive_message(fd, 0, text, sizeof text, &descriptor);
  if (length < 0) return throw_system_error(env, -length, "recvmsg");
  if (length == 0) return make_undefined(env);
  CHECK(env, napi_create_string_utf8(env, text, (size_t)length, &line));
  CHECK(env, napi_create_int32(env, descriptor, &number));
  CHECK(env, napi_create_array_with_length(env, 2, &result));
  CHECK(env, napi_set_element(env, result, 0, line));
  CHECK(env, napi_set_element(env, result, 1, number));
  return result;
}
