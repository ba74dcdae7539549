/*
 * A daemon that gives way to a successor of its own will: which settings that one is started with, and with which
 * the next, if it never comes to serve. Settings are text for the daemon's environment and not looked into.
 */
#include "supervisor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SETTINGS "WSFS_DAEMON_SETTINGS"
#define RELOAD "WSFS_RELOAD" /* "TAG", or "TAG WHY": it failed */

static struct {
  char *tag, *settings; /* what was asked for; NULL: nothing */
  char *before;         /* while a daemon with others is to take over */
} self;

static void set(char **text, char *value)
{
  free(*text);
  *text = value;
}

void keep_reload(const char *values)
{
  const char *space = strchr(values, ' ');
  if (space == NULL) return;
  set(&self.tag, strndup(values, (size_t)(space - values)));
  set(&self.settings, strdup(space + 1));
}

bool begin_reload(void)
{
  const char *current = getenv(SETTINGS), *crashes = getenv("WSFS_RESTARTS");
  if (self.tag == NULL || self.settings == NULL || current == NULL) return false;
  set(&self.before, strdup(current));
  /* Without memory for it the daemon goes on with what there is. */
  if (crashes == NULL || *crashes == '\0') setenv("WSFS_RESTARTS", "0", 1);
  setenv(SETTINGS, self.settings, 1);
  setenv(RELOAD, self.tag, 1);
  set(&self.settings, NULL);
  return true;
}

bool take_reload_back(const char *why)
{
  if (self.before == NULL) return false;
  char text[LINE_LENGTH];
  snprintf(text, sizeof text, "%s %s", self.tag, why);
  setenv(RELOAD, text, 1);
  setenv(SETTINGS, self.before, 1);
  set(&self.before, NULL);
  return true;
}

void end_reload(void)
{
  unsetenv(RELOAD);
  set(&self.tag, NULL);
  set(&self.settings, NULL);
  set(&self.before, NULL);
}
