/* JavaScript's calls for the fast path of a device: they grant and revoke leases of handles, for READ or WRITE. */
#include "addon.h"
#include "fast-path.h"

/* The first two arguments of each call: a device and a number. */
static struct fast_path *get_fast_path(napi_env env, const napi_value *values, int64_t *number)
{
  return get_int64(env, values[1], number) ? fast_path_of(env, values[0]) : NULL;
}

/* The arguments of a call that takes only these two. */
static struct fast_path *get_both(napi_env env, napi_callback_info info, int64_t *number)
{
  napi_value values[2];
  return get_arguments(env, info, values, 2) ? get_fast_path(env, values, number) : NULL;
}

/* deviceGrantRead(device, handle, fd) */
napi_value device_grant_read(napi_env env, napi_callback_info info)
{
  napi_value values[3];
  int64_t handle;
  int fd;
  if (!get_arguments(env, info, values, 3) || !get_int(env, values[2], &fd)) return NULL;
  struct fast_path *fast_path = get_fast_path(env, values, &handle);
  if (fast_path != NULL) fast_path_grant_read(fast_path, (uint64_t)handle, fd);
  return NULL;
}

/*
 * deviceAnswerRead(device, unique, fd, size, offset): answers a READ that JavaScript holds, by splicing bytes that are
 * in memory. False: it was not answered. The answer is shorter than `size` only at the end of the file.
 */
napi_value device_answer_read(napi_env env, napi_callback_info info)
{
  napi_value values[5], result;
  int64_t unique, offset;
  int fd, size;
  if (!get_arguments(env, info, values, 5) || !get_int(env, values[2], &fd) || !get_int(env, values[3], &size)) return NULL;
  struct fast_path *fast_path = get_fast_path(env, values, &unique);
  if (fast_path == NULL || !get_int64(env, values[4], &offset)) return NULL;
  bool is_answered = size > 0 && fast_path_answer_read(fast_path, (uint64_t)unique, fd, (size_t)size, (off_t)offset);
  CHECK(env, napi_get_boolean(env, is_answered, &result));
  return result;
}

/* deviceGrantWrite(device, handle, fd, milliseconds) */
napi_value device_grant_write(napi_env env, napi_callback_info info)
{
  napi_value values[4];
  int64_t handle;
  int fd, milliseconds;
  if (!get_arguments(env, info, values, 4)) return NULL;
  if (!get_int(env, values[2], &fd) || !get_int(env, values[3], &milliseconds)) return NULL;
  struct fast_path *fast_path = get_fast_path(env, values, &handle);
  if (fast_path != NULL) fast_path_grant_write(fast_path, (uint64_t)handle, fd, (uint64_t)milliseconds * 1000000);
  return NULL;
}

/* deviceRevokeReads(device, fd): for all handles that read from it. */
napi_value device_revoke_reads(napi_env env, napi_callback_info info)
{
  int64_t fd;
  struct fast_path *fast_path = get_both(env, info, &fd);
  if (fast_path != NULL) fast_path_revoke_reads(fast_path, (int)fd);
  return NULL;
}

/* deviceRevokeWrites(device, fd): for all handles that write to it. */
napi_value device_revoke_writes(napi_env env, napi_callback_info info)
{
  int64_t fd;
  struct fast_path *fast_path = get_both(env, info, &fd);
  if (fast_path != NULL) fast_path_revoke_writes(fast_path, (int)fd);
  return NULL;
}

/* deviceEndHandle(device, handle) */
napi_value device_end_handle(napi_env env, napi_callback_info info)
{
  int64_t handle;
  struct fast_path *fast_path = get_both(env, info, &handle);
  if (fast_path != NULL) fast_path_end(fast_path, (uint64_t)handle);
  return NULL;
}
