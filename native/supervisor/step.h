/*
 * Fault points of the supervisor. In the product they do nothing. In a build with WSFS_STEPS, for tests, the process
 * ends as by kill -9 at the label in WSFS_DIE_AT. That happens once: the file WSFS_DIE_ONCE is created then.
 */
#ifndef WSFS_STEP_H
#define WSFS_STEP_H

#ifdef WSFS_STEPS
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline void step(const char *label)
{
  const char *wanted = getenv("WSFS_DIE_AT"), *once = getenv("WSFS_DIE_ONCE");
  if (wanted == NULL || once == NULL || strcmp(wanted, label) != 0) return;
  int mark = open(once, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
  if (mark >= 0) kill(getpid(), SIGKILL);
}
#else
static inline void step(const char *label)
{
  (void)label;
}
#endif

#endif
