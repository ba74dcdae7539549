/* What is left of Node-API and libuv where there is no Node: values that are bytes, or lists of such. */
#ifndef WSFS_FUZZ_NODE_API_H
#define WSFS_FUZZ_NODE_API_H

#include <node_api.h>

/* An item of a list, and how long it is. */
const uint8_t *fake_buffer(napi_value list, uint32_t index, size_t *length);
/* All values but those that a reference holds are gone. */
void fake_forget_values(void);

#endif
