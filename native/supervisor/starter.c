/* Lines to those outside: our standard error, and whoever started us and reads the status descriptor. */
#include "supervisor.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

void say(const char *format, ...)
{
  char line[LINE_LENGTH];
  va_list values;
  va_start(values, format);
  vsnprintf(line, sizeof line, format, values);
  va_end(values);
  fprintf(stderr, "wsfs: %s\n", line);
}

void write_note(int status_fd, const char *text)
{
  struct pollfd reader = {.fd = status_fd, .events = POLLOUT};
  if (poll(&reader, 1, 0) == 1 && reader.revents == POLLOUT) dprintf(status_fd, "note %s\n", text);
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
