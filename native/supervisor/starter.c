/* Lines to the outside: our standard error, and the status descriptor of the command that started us. */
#include "supervisor.h"

#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/*
 * Never waits for a reader: a line that finds no room is dropped. A line longer than the room that poll(2) guarantees
 * is cut.
 */
static void write_line(int fd, const char *prefix, const char *text)
{
  char line[PIPE_BUF];
  int wanted = snprintf(line, sizeof line - 1, "%s%s", prefix, text);
  size_t length = wanted < (int)sizeof line - 1 ? (size_t)wanted : sizeof line - 2;
  line[length] = '\n';
  struct pollfd reader = {.fd = fd, .events = POLLOUT};
  if (poll(&reader, 1, 0) != 1 || (reader.revents & (POLLOUT | POLLERR)) != POLLOUT) return;
  if (write(fd, line, length + 1) < 0) return; /* the reader went just now */
}

void say(const char *format, ...)
{
  char line[LINE_LENGTH];
  va_list values;
  va_start(values, format);
  vsnprintf(line, sizeof line, format, values);
  va_end(values);
  write_line(STDERR_FILENO, "wsfs: ", line);
}

void write_note(int status_fd, const char *text)
{
  if (status_fd >= 0) write_line(status_fd, "note ", text);
}

void write_status(int *status_fd, const char *line)
{
  if (*status_fd < 0) return;
  dprintf(*status_fd, "%s\n", line); /* fails only when the reader is gone */
  close(*status_fd);
  *status_fd = -1;
}

void write_failure(int *status_fd, int code, const char *format, va_list values)
{
  char line[LINE_LENGTH], status[LINE_LENGTH + 32];
  vsnprintf(line, sizeof line, format, values);
  say("%s", line);
  snprintf(status, sizeof status, "failed %d %s", code, line);
  write_status(status_fd, status);
}
