/*
 * A machine on which no process can be made for as long as the file WSFS_NO_PROCESS_FILE names is there; with ".below"
 * behind its name, none by a child. Linked into a copy of the supervisor (--wrap=fork,--wrap=kill), which kills none but
 * one: others live. Each time is told of on stderr.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

pid_t __real_fork(void);
pid_t __wrap_fork(void);
int __real_kill(pid_t pid, int signal);
int __wrap_kill(pid_t pid, int signal);

static bool is_child;

pid_t __wrap_fork(void)
{
  const char *path = getenv("WSFS_NO_PROCESS_FILE");
  char below[4096];
  snprintf(below, sizeof below, "%s.below", path == NULL ? "" : path);
  if ((path != NULL && access(path, F_OK) == 0) || (is_child && access(below, F_OK) == 0)) {
    fprintf(stderr, "no process\n");
    errno = EAGAIN;
    return -1;
  }
  pid_t pid = __real_fork();
  if (pid == 0) is_child = true;
  return pid;
}

int __wrap_kill(pid_t pid, int signal)
{
  if (pid > 0) return __real_kill(pid, signal);
  fprintf(stderr, "kill(%d, %d)\n", (int)pid, signal);
  return 0;
}
