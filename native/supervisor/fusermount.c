/*
 * fusermount3, the set-user-id program that mounts and unmounts for ordinary users. It opens /dev/fuse itself and sends
 * the descriptor over the socket that _FUSE_COMMFD names.
 */
#include "supervisor.h"

#include "../socket-message.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define COMM_FD 3
#define NOT_FOUND 127

/* Runs in a session of its own, so that a Ctrl-C at the terminal does not stop it halfway. */
static void __attribute__((noreturn)) run(const char *const *arguments, int comm, int errors)
{
  int nothing = open("/dev/null", O_RDWR);
  setsid();
  if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 || dup2(nothing, STDOUT_FILENO) < 0) _exit(NOT_FOUND);
  if (dup2(errors, STDERR_FILENO) < 0) _exit(NOT_FOUND);
  if (comm >= 0 && comm != COMM_FD && dup2(comm, COMM_FD) < 0) _exit(NOT_FOUND);
  if (comm == COMM_FD) fcntl(comm, F_SETFD, 0);
  become_child(comm >= 0 ? COMM_FD + 1 : COMM_FD);
  if (setenv("_FUSE_COMMFD", "3", 1) == 0 && setenv("LC_ALL", "C", 1) == 0) {
    execvp(arguments[0], (char *const *)(uintptr_t)arguments);
  }
  _exit(NOT_FOUND);
}

/* -1: no descriptor came. */
static int receive_device(int comm)
{
  char byte;
  int device;
  return receive_message(comm, 0, &byte, sizeof byte, &device) > 0 ? device : -1;
}

/* Keeps the first line. Reads to the end, so that the writer never waits. */
static void read_message(int errors, char *message, size_t size)
{
  char rest[256];
  size_t length = 0;
  for (;;) {
    bool full = length + 1 >= size;
    ssize_t got = full ? read(errors, rest, sizeof rest) : read(errors, message + length, size - 1 - length);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    if (!full) length += (size_t)got;
  }
  message[length] = '\0';
  message[strcspn(message, "\n")] = '\0';
}

static void close_if_open(int fd)
{
  if (fd >= 0) close(fd);
}

int run_fusermount(const char *const *arguments, int *device, char *message, size_t size)
{
  int comm[2] = {-1, -1}, errors[2];
  *message = '\0';
  if (pipe2(errors, O_CLOEXEC) < 0) return errno;
  if (device != NULL && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, comm) < 0) {
    int error = errno;
    close(errors[0]);
    close(errors[1]);
    return error;
  }
  pid_t pid = fork();
  if (pid == 0) run(arguments, comm[1], errors[1]);
  int failure = errno;
  close(errors[1]);
  close_if_open(comm[1]);
  int status = 0, got = -1;
  if (pid > 0) {
    if (device != NULL) got = receive_device(comm[0]);
    read_message(errors[0], message, size);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  }
  close(errors[0]);
  close_if_open(comm[0]);
  if (pid < 0) return failure;

  bool done = WIFEXITED(status) && WEXITSTATUS(status) == 0 && (device == NULL || got >= 0);
  if (done) {
    if (device != NULL) *device = got;
    return 0;
  }
  close_if_open(got);
  if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_FOUND) return ENOENT;
  return strstr(message, strerror(EBUSY)) != NULL ? EBUSY : EPERM;
}
