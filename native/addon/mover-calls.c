/* JavaScript's calls for the fast path of a device: they grant and revoke leases of handles, for READ or WRITE. */
#include "addon.h"
#include "mover.h"

/* The first two arguments of each call: a device and a number. */
static struct mover *get_mover(napi_env env, const napi_value *values, int64_t *number)
{
  return get_int64(env, values[1], number) ? mover_of(env, values[0]) : NULL;
}

/* The arguments of a call that takes only these two. */
static struct mover *get_both(napi_env env, napi_callback_info info, int64_t *number)
{
  napi_value values[2];
  return get_arguments(env, info, values, 2) ? get_mover(env, values, number) : NULL;
}

/* deviceGrantRead(device, handle, fd) */
napi_value device_grant_read(napi_env env, napi_callback_info info)
{
  napi_value values[3];
  int64_t handle;
  int fd;
  if (!get_arguments(env, info, values, 3) || !get_int(env, values[2], &fd)) return NULL;
  struct mover *mover = get_mover(env, values, &handle);
  if (mover != NULL) mover_grant_read(mover, (uint64_t)handle, fd);
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
  struct mover *mover = get_mover(env, values, &unique);
  if (mover == NULL || !get_int64(env, values[4], &offset)) return NULL;
  bool is_answered = size > 0 && mover_answer_read(mover, (uint64_t)unique, fd, (size_t)size, (off_t)offset);
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
  struct mover *mover = get_mover(env, values, &handle);
  if (mover != NULL) mover_grant_write(mover, (uint64_t)handle, fd, (uint64_t)milliseconds * 1000000);
  return NULL;
}

/* deviceRevokeReads(device, fd): for all handles that read from it. */
napi_value device_revoke_reads(napi_env env, napi_callback_info info)
{
  int64_t fd;
  struct mover *mover = get_both(env, info, &fd);
  if (mover != NULL) mover_revoke_reads(mover, (int)fd);
  return NULL;
}

/* deviceRevokeWrites(device, fd): for all handles that write to it. */
napi_value device_revoke_writes(napi_env env, napi_callback_info info)
{
  int64_t fd;
  struct mover *mover = get_both(env, info, &fd);
  if (mover != NULL) mover_revoke_writes(mover, (int)fd);
  return NULL;
}

/* deviceEndHandle(device, handle) */
napi_value device_end_handle(napi_env env, napi_callback_info info)
{
  int64_t handle;
  struct mover *mover = get_both(env, info, &handle);
  if (mover != NULL) mover_end(mover, (uint64_t)handle);
  return NULL;
}
