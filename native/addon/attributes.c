/* Extended attributes by path. Symbolic links are not followed. */
#include "addon.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/xattr.h>

/*
 * Returns the whole value (or list of names), which the caller frees. NULL with errno set on failure. `name` NULL asks
 * for the list. The loop is needed because the value may grow between the two calls.
 */
static char *read_whole(const char *path, const char *name, size_t *length)
{
  for (;;) {
    ssize_t size = name == NULL ? llistxattr(path, NULL, 0) : lgetxattr(path, name, NULL, 0);
    if (size < 0) return NULL;
    char *data = malloc((size_t)size + 1);
    if (data == NULL) return NULL;
    ssize_t got = name == NULL ? llistxattr(path, data, (size_t)size) : lgetxattr(path, name, data, (size_t)size);
    /* With size 0 the kernel only tells the length, so the answer is complete only if the length is still 0. */
    if (got >= 0 && got <= size) {
      *length = (size_t)got;
      return data;
    }
    int error = got < 0 ? errno : ERANGE;
    free(data);
    if (error != ERANGE) {
      errno = error;
      return NULL;
    }
  }
}

/* getxattr(path, name): a Buffer. */
napi_value get_attribute(napi_env env, napi_callback_info info)
{
  napi_value values[2], result = NULL;
  if (!get_arguments(env, info, values, 2)) return NULL;
  char *path = get_text(env, values[0]);
  char *name = path == NULL ? NULL : get_text(env, values[1]);
  if (name != NULL) {
    size_t length = 0;
    char *data = read_whole(path, name, &length);
    if (data == NULL) throw_system_error(env, errno, "lgetxattr");
    else if (napi_create_buffer_copy(env, length, data, NULL, &result) != napi_ok) throw_node_api_error(env);
    free(data);
  }
  free(name);
  free(path);
  return result;
}

/* setxattr(path, name, value, flags): flags are XATTR_CREATE 1, XATTR_REPLACE 2. */
napi_value set_attribute(napi_env env, napi_callback_info info)
{
  napi_value values[4], result = NULL;
  uint8_t *data;
  size_t length;
  int flags;
  if (!get_arguments(env, info, values, 4)) return NULL;
  if (!get_bytes(env, values[2], &data, &length) || !get_int(env, values[3], &flags)) return NULL;
  char *path = get_text(env, values[0]);
  char *name = path == NULL ? NULL : get_text(env, values[1]);
  if (name != NULL) {
    if (lsetxattr(path, name, data, length, flags) < 0) throw_system_error(env, errno, "lsetxattr");
    else result = make_undefined(env);
  }
  free(name);
  free(path);
  return result;
}

/* listxattr(path): an array of names. */
napi_value list_attributes(napi_env env, napi_callback_info info)
{
  napi_value value, result = NULL;
  if (!get_arguments(env, info, &value, 1)) return NULL;
  char *path = get_text(env, value);
  if (path == NULL) return NULL;
  size_t length = 0;
  char *names = read_whole(path, NULL, &length);
  int error = errno;
  free(path);
  if (names == NULL) return throw_system_error(env, error, "llistxattr");
  names[length] = '\0';
  bool made = napi_create_array(env, &result) == napi_ok;
  uint32_t count = 0;
  for (char *name = names; made && name < names + length; name += strlen(name) + 1) {
    napi_value text;
    made = napi_create_string_utf8(env, name, NAPI_AUTO_LENGTH, &text) == napi_ok &&
           napi_set_element(env, result, count++, text) == napi_ok;
  }
  free(names);
  if (made) return result;
  throw_node_api_error(env);
  return NULL;
}

/* removexattr(path, name) */
napi_value remove_attribute(napi_env env, napi_callback_info info)
{
  napi_value values[2], result = NULL;
  if (!get_arguments(env, info, values, 2)) return NULL;
  char *path = get_text(env, values[0]);
  char *name = path == NULL ? NULL : get_text(env, values[1]);
  if (name != NULL) {
    if (lremovexattr(path, name) < 0) throw_system_error(env, errno, "lremovexattr");
    else result = make_undefined(env);
  }
  free(name);
  free(path);
  return result;
}
