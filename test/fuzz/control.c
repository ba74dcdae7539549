/*
 * The supervisor's end of the control socket, for libFuzzer: whatever a daemon says, and whenever it dies, nothing of it
 * stays open, a mount is served only while there is one, and who comes next gets the settings that were asked for.
 * Supervisor and sockets are real; processes, mounts, clock and environment are not.
 */
#include "../../native/supervisor/supervisor.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define start_daemon start_real_daemon
#include "../../native/supervisor/process.c"
#undef start_daemon

static int64_t clock_ms;
static pid_t last_pid;
static int daemon_end = -1; /* of the control socket; -1: no daemon */
static bool is_mounted;
static const char *const variables[] = {"WSFS_DAEMON_SETTINGS", "WSFS_RELOAD", "WSFS_TRIAL", "WSFS_RESTARTS", "WSFS_DIED_OF_ITSELF"};
#define VARIABLES (sizeof variables / sizeof variables[0])
static char *values[VARIABLES];

static char **variable(const char *name)
{
  for (size_t i = 0; i < VARIABLES; i++) if (strcmp(variables[i], name) == 0) return &values[i];
  abort();
}

static int fake_setenv(const char *name, const char *value, int overwrite)
{
  char *copy = strdup(value), **place = variable(name);
  assert(overwrite == 1 && copy != NULL && strlen(copy) < RELOAD_LENGTH); /* the kernel takes no longer string */
  free(*place);
  *place = copy;
  return 0;
}

static int fake_unsetenv(const char *name)
{
  free(*variable(name));
  *variable(name) = NULL;
  return 0;
}

static int fake_start_daemon(char **program, pid_t *pid, int *control)
{
  int ends[2];
  assert(program[0] != NULL);
  assert(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
  daemon_end = ends[1];
  *control = ends[0];
  *pid = ++last_pid;
  return 0;
}

static bool fake_mount_device(const struct options *options, struct mount *mount, char *reason, size_t size)
{
  (void)reason;
  (void)size;
  mount->device = options->device_fd >= 0 ? dup(options->device_fd) : open("/dev/null", O_RDWR | O_CLOEXEC);
  return is_mounted = mount->device >= 0;
}

static bool fake_find_our_mount(const struct mount *mount, struct table_entry *entry)
{
  (void)entry;
  return mount->device >= 0 && is_mounted;
}

static pid_t fake_start_unmount(const struct mount *mount, enum unmount_how how)
{
  (void)mount;
  (void)how;
  return ++last_pid;
}

static void check_text(const char *format, va_list texts)
{
  char line[LINE_LENGTH];
  vsnprintf(line, sizeof line, format, texts);
}

void say(const char *format, ...)
{
  va_list texts;
  va_start(texts, format);
  check_text(format, texts);
  va_end(texts);
}

void write_note(int status_fd, const char *text)
{
  (void)status_fd;
  assert(strlen(text) < RELOAD_LENGTH + 64);
}

void write_status(int *status_fd, const char *line)
{
  (void)status_fd;
  assert(strlen(line) < LINE_LENGTH);
}

void write_failure(int *status_fd, int code, const char *format, va_list texts)
{
  (void)status_fd;
  assert(code >= 1 && code <= 125);
  check_text(format, texts);
}

#define now_ms() (clock_ms)
#define getenv(name) (*variable(name))
#define setenv fake_setenv
#define unsetenv fake_unsetenv
#define prctl(...) 0
#define kill(pid, signal) 0
#define start_daemon fake_start_daemon
#define mount_device fake_mount_device
#define find_our_mount fake_find_our_mount
#define find_mount_of(connection, entry) ((void)(entry), false)
#define is_connected(device) is_mounted
#define start_unmount fake_start_unmount
#define main supervisor_main
#include "../../native/supervisor/successor.c"
#define self reload
#include "../../native/supervisor/reload.c"
#undef self
#define self supervisor
#include "../../native/supervisor/supervisor.c"
#undef self
#undef main

static char *program[] = {"daemon", NULL};

struct input {
  const uint8_t *next;
  size_t left;
};

static uint8_t byte_of(struct input *input)
{
  if (input->left == 0) return 0;
  input->left--;
  return *input->next++;
}

static size_t count_descriptors(void)
{
  size_t count = 0;
  DIR *folder = opendir("/proc/self/fd");
  while (readdir(folder) != NULL) count++;
  closedir(folder);
  return count;
}

/* A word that the supervisor knows, or none, and bytes of the input, repeated where the message is to be long. */
static size_t make_line(struct input *input, char *line, size_t size)
{
  static const char *const words[] = {"", "prepared", "ready", "failed ", "outdated ", "note ", "heartbeat", "unmount", "reload ", "reload t s", "reload t s\x1fp"};
  unsigned what = byte_of(input);
  size_t length = (size_t)snprintf(line, size, "%s", words[what % 16 < 11 ? what % 16 : 0]);
  size_t given = byte_of(input), times = (what & 0xf0) == 0xf0 ? 1000 : (what & 0x10) != 0;
  if (given > input->left) given = input->left;
  for (; times > 0 && length + given < size; times--) {
    memcpy(line + length, input->next, given);
    length += given;
  }
  input->next += given;
  input->left -= given;
  return length == 0 ? 1 : length;
}

/* With so many descriptors. */
static void send_as_daemon(const char *line, size_t length, size_t descriptors)
{
  if (daemon_end < 0) return;
  int null = open("/dev/null", O_RDWR | O_CLOEXEC), fds[] = {null, null};
  union {
    struct cmsghdr header;
    char space[CMSG_SPACE(sizeof fds)];
  } extra = {0};
  struct iovec part = {.iov_base = (char *)(uintptr_t)line, .iov_len = length};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  if (descriptors > 0) {
    message.msg_control = &extra;
    message.msg_controllen = CMSG_SPACE(descriptors * sizeof(int));
    extra.header = (struct cmsghdr){CMSG_LEN(descriptors * sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(&extra.header), fds, descriptors * sizeof(int));
  }
  sendmsg(daemon_end, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  close(null);
}

/* What the last "reload" has asked for, read by other means than the supervisor's; false: nothing. */
static bool asks_for(const char *line, char *settings)
{
  const char *space = strncmp(line, "reload ", 7) == 0 ? strchr(line + 7, ' ') : NULL;
  if (space == NULL) return false;
  size_t length = strcspn(space + 1, "\x1f\n");
  const char *newline = strchr(line, '\n');
  if (newline != NULL && newline < space) return false;
  memcpy(settings, space + 1, length);
  settings[length] = '\0';
  return true;
}

/* A supervisor in our place is told of the daemon that gave way as we know it. */
static void check_told(void)
{
  if (!reload.on_trial || reload.other.settings == NULL || strchr(reload.tag, ' ') != NULL) return;
  assert(*variable("WSFS_TRIAL") != NULL);
  if (**variable("WSFS_TRIAL") == '\0') return; /* there was no room for it */
  struct how ours = reload.other;
  char *tag = reload.tag;
  bool is_back = reload.is_back, served = reload.served;
  reload.other = (struct how){0};
  adopt_reload(served ? 0 : -1, clock_ms);
  assert(strcmp(reload.other.settings, ours.settings) == 0 && strcmp(reload.tag, tag) == 0 && reload.is_back == is_back);
  free(ours.settings);
  free(tag);
}

static void end_daemon(int status)
{
  static char settings[RELOAD_LENGTH + 64];
  if (supervisor.daemon == 0) return;
  close(daemon_end);
  daemon_end = -1;
  read_control();
  bool is_to_change = status == 0 && supervisor.phase == SERVING && is_mounted && reload.next.settings != NULL;
  if (is_to_change) snprintf(settings, sizeof settings, "%s", reload.next.settings);
  on_daemon_end(status);
  assert(!is_to_change || strcmp(*variable("WSFS_DAEMON_SETTINGS"), settings) == 0);
  check_told();
}

static void pass_time(struct input *input)
{
  clock_ms += byte_of(input) * 500;
  watch(1000);
  unsigned what = byte_of(input);
  is_mounted = is_mounted && what % 16 != 0;
  for (int how = 0; how < 3; how++) {
    if (supervisor.unmounts[how] > 0) on_unmount_end((enum unmount_how)how, (what % 4 == 0 ? EBUSY : what % 4 == 1 ? EAGAIN : 0) << 8);
  }
}

static void say_something(struct input *input)
{
  static char line[RELOAD_LENGTH + 64], settings[sizeof line];
  size_t length = make_line(input, line, sizeof line - 1);
  line[length] = '\0';
  bool is_asked = asks_for(line, settings) && daemon_end >= 0;
  send_as_daemon(line, length, byte_of(input) % 8 < 6 ? 0 : byte_of(input) % 3);
  read_control();
  if (is_asked && reload.next.settings != NULL) assert(strcmp(reload.next.settings, settings) == 0);
}

static void start_over(void)
{
  clock_ms = 1000;
  is_mounted = false;
  memset(&supervisor, 0, sizeof supervisor);
  supervisor.options = (struct options){.mountpoint = "/m", .extra = "", .status_fd = -1, .control_fd = -1, .device_fd = -1, .served_ms = -1, .silence = 30, .crashes = 3, .program = program};
  supervisor.control = supervisor.process = supervisor.mount.device = -1;
  fake_setenv("WSFS_DAEMON_SETTINGS", "first", 1);
  assert(start_first());
}

static void forget_all(void)
{
  int *const descriptors[] = {&supervisor.control, &supervisor.options.device_fd, &supervisor.mount.device, &daemon_end};
  for (size_t i = 0; i < sizeof descriptors / sizeof descriptors[0]; i++) {
    if (*descriptors[i] >= 0) close(*descriptors[i]);
    *descriptors[i] = -1;
  }
  free(reload.tag);
  free(reload.next_tag);
  forget(&reload.next);
  forget(&reload.other);
  memset(&reload, 0, sizeof reload);
  for (size_t i = 0; i < VARIABLES; i++) fake_unsetenv(variables[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  static const int statuses[] = {0, 9, 70 << 8, 0};
  struct input input = {data, size};
  size_t open_before = count_descriptors();
  start_over();
  while (input.left > 0) {
    int what = byte_of(&input) % 8;
    if (what < 6) say_something(&input);
    else if (what == 6) end_daemon(statuses[byte_of(&input) % 4]);
    else pass_time(&input);
    assert(supervisor.phase != SERVING || supervisor.mount.device >= 0);
  }
  forget_all();
  assert(count_descriptors() == open_before);
  return 0;
}
