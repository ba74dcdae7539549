/* Child processes, and the control socket between the supervisor and the daemon. */
#include "supervisor.h"

#include "../socket-message.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CONTROL_FD 3

static void close_from(unsigned first, unsigned last)
{
  if (first > last || syscall(SYS_close_range, first, last, 0) == 0) return;
  unsigned limit = (unsigned)getdtablesize(); /* kernels before 5.9 */
  for (unsigned fd = first; fd <= last && fd < limit; fd++) close((int)fd);
}

void reset_descriptors(int keep)
{
  int fd;
  do {
    fd = open("/dev/null", O_RDWR); /* the lowest free number */
  } while (fd >= 0 && fd <= STDERR_FILENO);
  if (fd >= 0) close(fd);
  if (keep <= STDERR_FILENO) {
    close_from(STDERR_FILENO + 1, ~0U);
  } else {
    close_from(STDERR_FILENO + 1, (unsigned)keep - 1);
    close_from((unsigned)keep + 1, ~0U);
  }
}

/*
 * A Ctrl-C that came between fork and setsid is pending, because all signals of the supervisor are blocked. It was
 * meant only for the supervisor. Ignoring a signal drops the pending one.
 */
static void drop_signals(void)
{
  static const int handled[] = {SIGINT, SIGTERM, SIGHUP, SIGCHLD, SIGPIPE, SIGTSTP, SIGTTIN, SIGTTOU};
  for (size_t i = 0; i < sizeof handled / sizeof handled[0]; i++) {
    signal(handled[i], SIG_IGN);
    signal(handled[i], SIG_DFL);
  }
}

void become_child(int first_closed)
{
  sigset_t none;
  drop_signals();
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  close_from((unsigned)first_closed, ~0U);
}

static void __attribute__((noreturn)) run_daemon(char **program, int control)
{
  setsid(); /* cannot fail: a process that was just forked leads no group */
  if (control == CONTROL_FD) fcntl(control, F_SETFD, 0);
  else if (dup2(control, CONTROL_FD) < 0) _exit(127);
  become_child(CONTROL_FD + 1);
  if (setenv("WSFS_CONTROL_FD", "3", 1) == 0) execvp(program[0], program);
  /* The supervisor prints it like every failure that the daemon reports. */
  char line[LINE_LENGTH];
  snprintf(line, sizeof line, "failed 1 cannot run %s: %s", program[0], strerror(errno));
  send_line(CONTROL_FD, line, -1);
  _exit(127);
}

/*
 * For this process and its children: a daemon's memory contains tokens and content. A developer can raise the limit
 * again.
 */
static void forbid_core(void)
{
  struct rlimit core;
  if (getrlimit(RLIMIT_CORE, &core) < 0) return;
  core.rlim_cur = 0;
  if (setrlimit(RLIMIT_CORE, &core) < 0) say("core files cannot be forbidden: %s", strerror(errno));
}

int start_daemon(char **program, pid_t *pid, int *control)
{
  int ends[2];
  forbid_core();
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) return errno;
  pid_t child = fork();
  if (child == 0) run_daemon(program, ends[1]);
  int error = child < 0 ? errno : 0;
  close(ends[1]);
  if (error != 0) {
    close(ends[0]);
    return error; /* the -1 is not kept, because kill(2) takes it for every process */
  }
  *pid = child;
  *control = ends[0];
  return 0;
}

void send_line(int control, const char *line, int descriptor)
{
  /* Never waits: a daemon that hangs must not make its supervisor hang. */
  int error = send_message(control, line, descriptor);
  /*
   * The daemon is gone, or hangs with so many unread lines. Its end, or its missing heartbeat, decides what happens
   * next.
   */
  if (error != 0 && error != EPIPE && error != EAGAIN) say("cannot talk to the daemon: %s", strerror(error));
}

int receive_line(int control, char *line, size_t size, int *descriptor)
{
  int received;
  int length = receive_message(control, MSG_DONTWAIT, line, size - 1, &received);
  if (length < 0) return length;
  line[length] = '\0';
  if (received >= 0) {
    if (*descriptor >= 0) close(*descriptor);
    *descriptor = received;
  }
  char *newline = strchr(line, '\n');
  if (newline != NULL) *newline = '\0';
  return length;
}

bool is_dead(pid_t pid, int *status)
{
  char path[64], text[1024];
  snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  ssize_t length = read(file, text, sizeof text - 1);
  close(file);
  if (length <= 0) return false;
  text[length] = '\0';
  /* The name in brackets may contain anything. The state follows it; the last field is the wait status. */
  const char *name_end = strrchr(text, ')'), *last = strrchr(text, ' ');
  if (name_end == NULL || (strncmp(name_end, ") Z ", 4) != 0 && strncmp(name_end, ") X ", 4) != 0)) return false;
  *status = atoi(last + 1);
  return true;
}

void describe_end(int status, char *text, size_t size)
{
  if (WIFSIGNALED(status)) snprintf(text, size, "signal %d", WTERMSIG(status));
  else snprintf(text, size, "exit code %d", WEXITSTATUS(status));
}

bool was_killed(int status)
{
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

int64_t now_ms(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* SIGCHLD and the signals that ask for the end come through a descriptor, so that no code ever runs in a handler. */
bool asks_to_end(int signals)
{
  struct signalfd_siginfo info;
  bool asked = false;
  while (read(signals, &info, sizeof info) == (ssize_t)sizeof info) asked = asked || info.ssi_signo != SIGCHLD;
  return asked;
}

int take_signals(void)
{
  static const int wanted[] = {SIGINT, SIGTERM, SIGHUP, SIGCHLD};
  sigset_t set;
  sigemptyset(&set);
  for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) sigaddset(&set, wanted[i]);
  signal(SIGPIPE, SIG_IGN); /* a closed stderr must not end us */
  /* Ctrl-Z, and output to a terminal that takes none from the background, must not stop us: programs use the mount. */
  signal(SIGTSTP, SIG_IGN);
  signal(SIGTTIN, SIG_IGN);
  signal(SIGTTOU, SIG_IGN);
  signal(SIGCHLD, SIG_DFL); /* some callers ignore it: children would vanish without notice */
  if (sigprocmask(SIG_BLOCK, &set, NULL) < 0) return -1;
  return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}
