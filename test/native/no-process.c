/*
 * A machine on which no process can be made for as long as the file WSFS_NO_PROCESS_FILE names is there. Linked into a
 * copy of the supervisor (--wrap=fork,--wrap=kill), which kills none but one: others are told of on stderr, and live.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

pid_t __real_fork(void);
pid_t __wrap_fork(void);
int __real_kill(pid_t pid, int signal);
int __wrap_kill(pid_t pid, int signal);

pid_t __wrap_fork(void)
{
  const char *path = getenv("WSFS_NO_PROCESS_FILE");
  if (path == NULL || access(path, F_OK) != 0) return __real_fork();
  errno = EAGAIN;
  return -1;
}

int __wrap_kill(pid_t pid, int signal)
{
  if (pid > 0) return __real_kill(pid, signal);
  fprintf(stderr, "kill(%d, %d)\n", (int)pid, signal);
  return 0;
}
