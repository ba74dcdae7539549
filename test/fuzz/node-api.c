/* See node-api.h. */
#include "node-api.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#define VALUES 64
#define ITEMS 64

struct napi_value__ {
  uint8_t *bytes;
  size_t length;
  node_api_basic_finalize finalize; /* NULL: they are ours to free */
  struct napi_value__ *items[ITEMS];
  bool is_held;
};

static struct napi_value__ *values[VALUES];
static size_t count;

static napi_value make(uint8_t *bytes, size_t length, napi_finalize finalize)
{
  struct napi_value__ *value = calloc(1, sizeof *value);
  assert(value != NULL && count < VALUES);
  value->bytes = bytes;
  value->length = length;
  value->finalize = (node_api_basic_finalize)finalize;
  values[count++] = value;
  return value;
}

static void forget(struct napi_value__ *value)
{
  if (value->finalize != NULL) value->finalize(NULL, value->bytes, NULL);
  else free(value->bytes);
  free(value);
}

void fake_forget_values(void)
{
  size_t kept = 0;
  for (size_t i = 0; i < count; i++) {
    if (values[i]->is_held) values[kept++] = values[i];
    else forget(values[i]);
  }
  count = kept;
}

const uint8_t *fake_buffer(napi_value list, uint32_t index, size_t *length)
{
  *length = list->items[index]->length;
  return list->items[index]->bytes;
}

napi_status napi_create_array(napi_env env, napi_value *result)
{
  (void)env;
  *result = make(NULL, 0, NULL);
  return napi_ok;
}

napi_status napi_set_element(napi_env env, napi_value list, uint32_t index, napi_value value)
{
  (void)env;
  assert(index < ITEMS);
  list->items[index] = value;
  return napi_ok;
}

napi_status napi_create_arraybuffer(napi_env env, size_t length, void **data, napi_value *result)
{
  (void)env;
  *data = calloc(1, length);
  *result = make(*data, length, NULL);
  return napi_ok;
}

napi_status napi_create_buffer_copy(napi_env env, size_t length, const void *data, void **copy, napi_value *result)
{
  (void)env;
  (void)copy;
  uint8_t *bytes = malloc(length);
  assert(bytes != NULL);
  memcpy(bytes, data, length);
  *result = make(bytes, length, NULL);
  return napi_ok;
}

napi_status napi_create_external_buffer(napi_env env, size_t length, void *data, napi_finalize finalize, void *hint,
                                        napi_value *result)
{
  (void)env;
  (void)hint;
  *result = make(data, length, finalize);
  return napi_ok;
}

napi_status napi_create_reference(napi_env env, napi_value value, uint32_t references, napi_ref *result)
{
  (void)env;
  (void)references;
  value->is_held = true;
  *result = (napi_ref)value;
  return napi_ok;
}

napi_status napi_delete_reference(napi_env env, napi_ref reference)
{
  (void)env;
  ((struct napi_value__ *)reference)->is_held = false;
  return napi_ok;
}

/* Moves on by itself: what takes long does so in each run. */
uint64_t uv_hrtime(void)
{
  static uint64_t now;
  return now += 100;
}
