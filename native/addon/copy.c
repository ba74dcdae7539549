/*
 * Calls that may wait for a disk: fallocate, reflinks, copies. Each runs in libuv's pool and returns a promise. The
 * descriptors belong to the caller, who keeps them open until the promise is settled.
 */
#include "addon.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK (1024 * 1024)

struct job {
  napi_async_work work;
  napi_deferred deferred;
  const char *syscall;            /* its name, for the error */
  int (*run)(struct job *job);    /* runs in the pool; 0 or an errno */
  int from, to, mode;
  int64_t from_offset, to_offset, length;
  int64_t copied;
  bool answers_copied;
  int error;
};

static bool cannot_copy_in_kernel(int error)
{
  return error == EXDEV || error == EINVAL || error == ENOSYS || error == EOPNOTSUPP || error == ENOTTY ||
         error == EPERM || error == EBADF || error == ETXTBSY;
}

/* 0 or an errno. Copies fewer bytes than asked when the source ends. */
static int copy_by_hand(int from, int64_t from_offset, int to, int64_t to_offset, int64_t length, int64_t *copied)
{
  char *buffer = malloc(CHUNK);
  if (buffer == NULL) return ENOMEM;
  int error = 0;
  while (error == 0 && length > 0) {
    ssize_t got = pread(from, buffer, length < CHUNK ? (size_t)length : CHUNK, from_offset);
    if (got == 0) break;
    if (got < 0) {
      if (errno != EINTR) error = errno;
      continue;
    }
    for (ssize_t done = 0; error == 0 && done < got;) {
      ssize_t put = pwrite(to, buffer + done, (size_t)(got - done), to_offset + done);
      if (put > 0) done += put;
      else if (put == 0) error = EIO;
      else if (errno != EINTR) error = errno;
    }
    if (error != 0) break;
    from_offset += got;
    to_offset += got;
    length -= got;
    *copied += got;
  }
  free(buffer);
  return error;
}

static int copy(int from, int64_t from_offset, int to, int64_t to_offset, int64_t length, int64_t *copied)
{
  while (length > 0) {
    off_t in = from_offset, out = to_offset;
    ssize_t got = copy_file_range(from, &in, to, &out, (size_t)length, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && !cannot_copy_in_kernel(errno)) return errno;
    /* Some file systems also return 0 when they cannot copy. Only reading shows the end of the file for certain. */
    if (got <= 0) return copy_by_hand(from, from_offset, to, to_offset, length, copied);
    from_offset += got;
    to_offset += got;
    length -= got;
    *copied += got;
  }
  return 0;
}

/* Copies only data: a hole of the source stays a hole. */
static int copy_data(int from, int to)
{
  struct stat status;
  if (fstat(from, &status) < 0) return errno;
  if (ftruncate(to, status.st_size) < 0) return errno;
  for (off_t offset = 0; offset < status.st_size;) {
    off_t data = lseek(from, offset, SEEK_DATA);
    off_t hole = data < 0 ? -1 : lseek(from, data, SEEK_HOLE);
    if (data < 0 || hole < 0) {
      if (errno == ENXIO) return 0; /* the file was truncated meanwhile */
      if (errno != EINVAL && errno != EOPNOTSUPP) return errno;
      data = offset; /* a file system without holes */
      hole = status.st_size;
    }
    if (hole > status.st_size) hole = status.st_size;
    if (data >= hole) return 0;
    int64_t copied = 0;
    int error = copy(from, data, to, data, hole - data, &copied);
    if (error != 0) return error;
    offset = hole;
  }
  return 0;
}

static int run_allocate(struct job *job)
{
  int error;
  do {
    error = fallocate(job->to, job->mode, job->to_offset, job->length) < 0 ? errno : 0;
  } while (error == EINTR);
  return error;
}

static int run_sync_disk(struct job *job)
{
  return syncfs(job->to) < 0 ? errno : 0;
}

static int run_clone(struct job *job)
{
  struct stat from, to;
  if (fstat(job->from, &from) < 0 || fstat(job->to, &to) < 0) return errno;
  if (from.st_dev == to.st_dev && from.st_ino == to.st_ino) return EINVAL;
  /* A reflink leaves the target's bytes beyond the source's end, and a copy leaves its old data in holes. */
  if (ftruncate(job->to, 0) < 0) return errno;
  if (ioctl(job->to, FICLONE, job->from) == 0) return 0;
  if (!cannot_copy_in_kernel(errno)) return errno;
  return copy_data(job->from, job->to);
}

static int run_copy(struct job *job)
{
  return copy(job->from, job->from_offset, job->to, job->to_offset, job->length, &job->copied);
}

static void execute(napi_env env, void *data)
{
  (void)env;
  struct job *job = data;
  job->error = job->run(job);
}

static void complete(napi_env env, napi_status status, void *data)
{
  struct job *job = data;
  if (status == napi_cancelled) job->error = ECANCELED;
  napi_value result = NULL;
  if (job->error != 0) {
    result = make_system_error(env, job->error, job->syscall);
    if (result != NULL) napi_reject_deferred(env, job->deferred, result);
  } else {
    result = job->answers_copied ? make_number(env, (double)job->copied) : make_undefined(env);
    if (result != NULL) napi_resolve_deferred(env, job->deferred, result);
  }
  napi_delete_async_work(env, job->work);
  free(job);
}

static napi_value start(napi_env env, struct job wanted)
{
  napi_value name, promise;
  CHECK(env, napi_create_string_utf8(env, wanted.syscall, NAPI_AUTO_LENGTH, &name));
  struct job *job = malloc(sizeof *job);
  if (job == NULL) return throw_system_error(env, ENOMEM, "malloc");
  *job = wanted;
  if (napi_create_async_work(env, NULL, name, execute, complete, job, &job->work) != napi_ok) {
    free(job);
    throw_node_api_error(env);
    return NULL;
  }
  if (napi_create_promise(env, &job->deferred, &promise) != napi_ok || napi_queue_async_work(env, job->work) != napi_ok) {
    napi_delete_async_work(env, job->work);
    free(job);
    throw_node_api_error(env);
    return NULL;
  }
  return promise;
}

/* fallocate(fd, mode, offset, length) */
napi_value allocate_file(napi_env env, napi_callback_info info)
{
  napi_value values[4];
  struct job job = {.syscall = "fallocate", .run = run_allocate};
  if (!get_arguments(env, info, values, 4)) return NULL;
  if (!get_int(env, values[0], &job.to) || !get_int(env, values[1], &job.mode) ||
      !get_int64(env, values[2], &job.to_offset) || !get_int64(env, values[3], &job.length)) {
    return NULL;
  }
  return start(env, job);
}

/* syncDisk(fd) */
napi_value sync_disk(napi_env env, napi_callback_info info)
{
  napi_value values[1];
  struct job job = {.syscall = "syncfs", .run = run_sync_disk};
  if (!get_arguments(env, info, values, 1) || !get_int(env, values[0], &job.to)) return NULL;
  return start(env, job);
}

/* clone(fdFrom, fdTo) */
napi_value clone_file(napi_env env, napi_callback_info info)
{
  napi_value values[2];
  struct job job = {.syscall = "clone", .run = run_clone};
  if (!get_arguments(env, info, values, 2)) return NULL;
  if (!get_int(env, values[0], &job.from) || !get_int(env, values[1], &job.to)) return NULL;
  return start(env, job);
}

/* copyFileRange(fdFrom, fromOffset, fdTo, toOffset, length): bytes copied. */
napi_value copy_range(napi_env env, napi_callback_info info)
{
  napi_value values[5];
  struct job job = {.syscall = "copy_file_range", .run = run_copy, .answers_copied = true};
  if (!get_arguments(env, info, values, 5)) return NULL;
  if (!get_int(env, values[0], &job.from) || !get_int64(env, values[1], &job.from_offset) ||
      !get_int(env, values[2], &job.to) || !get_int64(env, values[3], &job.to_offset) ||
      !get_int64(env, values[4], &job.length)) {
    return NULL;
  }
  return start(env, job);
}
