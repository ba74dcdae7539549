/* Converts JavaScript values: arguments, numbers, bytes, system errors. */
#include "addon.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

void throw_node_api_error(napi_env env)
{
  bool pending = false;
  if (napi_is_exception_pending(env, &pending) == napi_ok && pending) return;
  const napi_extended_error_info *info = NULL;
  napi_get_last_error_info(env, &info);
  const char *message = info != NULL && info->error_message != NULL ? info->error_message : "Node-API call failed";
  napi_throw_error(env, NULL, message);
}

bool get_arguments(napi_env env, napi_callback_info info, napi_value *values, size_t count)
{
  size_t given = count;
  if (napi_get_cb_info(env, info, &given, values, NULL, NULL) != napi_ok) {
    throw_node_api_error(env);
    return false;
  }
  if (given < count) {
    char message[96];
    snprintf(message, sizeof message, "expected %zu arguments, got %zu", count, given);
    napi_throw_type_error(env, NULL, message);
    return false;
  }
  return true;
}

bool get_int(napi_env env, napi_value value, int *result)
{
  int32_t number = 0;
  if (napi_get_value_int32(env, value, &number) != napi_ok) {
    napi_throw_type_error(env, NULL, "expected a number");
    return false;
  }
  *result = number;
  return true;
}

bool get_int64(napi_env env, napi_value value, int64_t *result)
{
  if (napi_get_value_int64(env, value, result) != napi_ok) {
    napi_throw_type_error(env, NULL, "expected a number");
    return false;
  }
  return true;
}

bool get_bytes(napi_env env, napi_value value, uint8_t **data, size_t *length)
{
  napi_typedarray_type type = napi_int8_array;
  void *start = NULL;
  if (napi_get_typedarray_info(env, value, &type, length, &start, NULL, NULL) != napi_ok || type != napi_uint8_array) {
    napi_throw_type_error(env, NULL, "expected a Uint8Array");
    return false;
  }
  *data = start;
  return true;
}

char *get_text(napi_env env, napi_value value)
{
  size_t length = 0;
  if (napi_get_value_string_utf8(env, value, NULL, 0, &length) != napi_ok) {
    napi_throw_type_error(env, NULL, "expected a string");
    return NULL;
  }
  char *text = malloc(length + 1);
  if (text == NULL) {
    napi_throw_error(env, "ENOMEM", "out of memory");
    return NULL;
  }
  if (napi_get_value_string_utf8(env, value, text, length + 1, &length) != napi_ok || strlen(text) != length) {
    free(text);
    napi_throw_type_error(env, NULL, "expected a string without a null character");
    return NULL;
  }
  return text;
}

napi_value make_undefined(napi_env env)
{
  napi_value value = NULL;
  napi_get_undefined(env, &value);
  return value;
}

napi_value make_number(napi_env env, double number)
{
  napi_value value;
  CHECK(env, napi_create_double(env, number, &value));
  return value;
}

/* Older glibc than 2.32 has no such function. libuv then gives the name, and knows fewer. */
const char *errno_name(int error)
{
  const char *(*told)(int) = (const char *(*)(int))dlsym(RTLD_DEFAULT, "strerrorname_np");
  if (told == NULL) return error == EOPNOTSUPP ? "EOPNOTSUPP" : uv_err_name(-error);
  const char *name = told(error);
  return name != NULL ? name : "EUNKNOWN";
}

napi_value make_system_error(napi_env env, int error, const char *syscall)
{
  char text[160];
  const char *name = errno_name(error);
  snprintf(text, sizeof text, "%s: %s, %s", name, uv_strerror(-error), syscall);
  napi_value code, message, call, number, result;
  CHECK(env, napi_create_string_utf8(env, name, NAPI_AUTO_LENGTH, &code));
  CHECK(env, napi_create_string_utf8(env, text, NAPI_AUTO_LENGTH, &message));
  CHECK(env, napi_create_string_utf8(env, syscall, NAPI_AUTO_LENGTH, &call));
  CHECK(env, napi_create_int32(env, -error, &number));
  CHECK(env, napi_create_error(env, code, message, &result));
  CHECK(env, napi_set_named_property(env, result, "errno", number));
  CHECK(env, napi_set_named_property(env, result, "syscall", call));
  return result;
}

napi_value throw_system_error(napi_env env, int error, const char *syscall)
{
  napi_value value = make_system_error(env, error, syscall);
  if (value != NULL) napi_throw(env, value);
  return NULL;
}
