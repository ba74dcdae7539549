/*
 * Shared by the files of the addon: reading arguments, making errors, and the functions that each file exports to
 * JavaScript. The addon knows descriptors, buffers and system calls, and of the FUSE protocol only the opcodes in
 * fast-path.h and refusals.h. Its only callers are src/fuse/native.ts and src/content/system-calls.ts. Their types are
 * checked by the compiler, so the addon checks an argument only where a wrong one could harm the process.
 */
#ifndef WSFS_ADDON_H
#define WSFS_ADDON_H

#define NAPI_VERSION 8

#include <node_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Leaves the calling function with NULL. A JavaScript exception is pending then. */
#define CHECK(env, call)              \
  do {                                \
    if ((call) != napi_ok) {          \
      throw_node_api_error(env);      \
      return NULL;                    \
    }                                 \
  } while (0)

/* values.c: each of these throws and returns false (or NULL) when the value has the wrong type. */
void throw_node_api_error(napi_env env);
bool get_arguments(napi_env env, napi_callback_info info, napi_value *values, size_t count);
bool get_int(napi_env env, napi_value value, int *result);
bool get_int64(napi_env env, napi_value value, int64_t *result);
bool get_bytes(napi_env env, napi_value value, uint8_t **data, size_t *length);
/* A copy that the caller frees. */
char *get_text(napi_env env, napi_value value);

napi_value make_undefined(napi_env env);
napi_value make_number(napi_env env, double number);
/* "ENOSPC" for ENOSPC. "EOPNOTSUPP", never its other name "ENOTSUP". */
const char *errno_name(int error);
/* An Error like those of node:fs: message, code ("ENOSPC"), errno (negative), syscall. */
napi_value make_system_error(napi_env env, int error, const char *syscall);
/* Always returns NULL, so that a function can return it. */
napi_value throw_system_error(napi_env env, int error, const char *syscall);

/* The functions that JavaScript sees, by file. */
napi_value open_device(napi_env env, napi_callback_info info);
napi_value device_resume(napi_env env, napi_callback_info info);
napi_value device_pause(napi_env env, napi_callback_info info);
napi_value device_reply(napi_env env, napi_callback_info info);
napi_value device_notify(napi_env env, napi_callback_info info);
napi_value device_grant_read(napi_env env, napi_callback_info info);
napi_value device_grant_write(napi_env env, napi_callback_info info);
napi_value device_revoke_reads(napi_env env, napi_callback_info info);
napi_value device_revoke_writes(napi_env env, napi_callback_info info);
napi_value device_answer_read(napi_env env, napi_callback_info info);
napi_value device_end_handle(napi_env env, napi_callback_info info);
napi_value device_answered(napi_env env, napi_callback_info info);
napi_value device_close(napi_env env, napi_callback_info info);

napi_value open_control(napi_env env, napi_callback_info info);
napi_value control_send(napi_env env, napi_callback_info info);
napi_value control_close(napi_env env, napi_callback_info info);
napi_value receive_descriptor(napi_env env, napi_callback_info info);

napi_value forbid_core(napi_env env, napi_callback_info info);
napi_value socket_pair(napi_env env, napi_callback_info info);
napi_value connect_socket(napi_env env, napi_callback_info info);
napi_value backing_open(napi_env env, napi_callback_info info);
napi_value backing_close(napi_env env, napi_callback_info info);
napi_value connection_number(napi_env env, napi_callback_info info);
napi_value is_connected(napi_env env, napi_callback_info info);
napi_value set_times(napi_env env, napi_callback_info info);
napi_value current_time(napi_env env, napi_callback_info info);
napi_value seek_file(napi_env env, napi_callback_info info);
napi_value read_now(napi_env env, napi_callback_info info);
napi_value lock_file(napi_env env, napi_callback_info info);
napi_value is_only_writer(napi_env env, napi_callback_info info);
napi_value spread_folders(napi_env env, napi_callback_info info);

napi_value get_attribute(napi_env env, napi_callback_info info);
napi_value set_attribute(napi_env env, napi_callback_info info);
napi_value list_attributes(napi_env env, napi_callback_info info);
napi_value remove_attribute(napi_env env, napi_callback_info info);

napi_value allocate_file(napi_env env, napi_callback_info info);
napi_value sync_disk(napi_env env, napi_callback_info info);
napi_value clone_file(napi_env env, napi_callback_info info);
napi_value copy_range(napi_env env, napi_callback_info info);

#endif
