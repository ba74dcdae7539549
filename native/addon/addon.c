/* The addon's entry: the names that JavaScript sees. */
#include "addon.h"

NAPI_MODULE_INIT()
{
  static const struct {
    const char *name;
    napi_callback function;
  } exported[] = {
    {"openDevice", open_device},
    {"deviceResume", device_resume},
    {"devicePause", device_pause},
    {"deviceReply", device_reply},
    {"deviceNotify", device_notify},
    {"deviceGrantRead", device_grant_read},
    {"deviceGrantWrite", device_grant_write},
    {"deviceRevokeReads", device_revoke_reads},
    {"deviceRevokeWrites", device_revoke_writes},
    {"deviceAnswerRead", device_answer_read},
    {"deviceEndHandle", device_end_handle},
    {"deviceAnswered", device_answered},
    {"deviceClose", device_close},
    {"openControl", open_control},
    {"controlSend", control_send},
    {"controlClose", control_close},
    {"receiveDescriptor", receive_descriptor},
    {"socketPair", socket_pair},
    {"forbidCore", forbid_core},
    {"connectSocket", connect_socket},
    {"backingOpen", backing_open},
    {"backingClose", backing_close},
    {"connectionNumber", connection_number},
    {"isConnected", is_connected},
    {"setTimes", set_times},
    {"currentTime", current_time},
    {"seek", seek_file},
    {"readNow", read_now},
    {"lockFile", lock_file},
    {"isOnlyWriter", is_only_writer},
    {"spreadFolders", spread_folders},
    {"getxattr", get_attribute},
    {"setxattr", set_attribute},
    {"listxattr", list_attributes},
    {"removexattr", remove_attribute},
    {"fallocate", allocate_file},
    {"syncDisk", sync_disk},
    {"clone", clone_file},
    {"copyFileRange", copy_range},
  };
  for (size_t i = 0; i < sizeof exported / sizeof exported[0]; i++) {
    napi_value function;
    CHECK(env, napi_create_function(env, exported[i].name, NAPI_AUTO_LENGTH, exported[i].function, NULL, &function));
    CHECK(env, napi_set_named_property(env, exports, exported[i].name, function));
  }
  return exports;
}
