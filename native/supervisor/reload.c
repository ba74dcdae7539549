/*
 * A daemon that gives way to a successor of its own will: with which settings, and of which program, that one is
 * started, and with which those after it, if it never comes to serve or does not serve for long. Settings are text
 * for the daemon's environment and not looked into.
 */
#include "supervisor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#define SETTINGS "WSFS_DAEMON_SETTINGS"
#define RELOAD "WSFS_RELOAD" /* "TAG", or "TAG WHY": it failed; of the last one */
#define WORD_END "\x1f"
#define PROGRAM_WORDS 16
#define TRIAL_MS 60000 /* one that has served for so long, in a row, can */

/* Of a daemon; program NULL: what the command line names. */
struct how {
  char *settings, **program;
};

static struct {
  char *tag;
  struct how next;   /* what was asked for; settings NULL: nothing */
  struct how before; /* of the one that gave way; settings NULL: that is in use, or nobody did */
  char **program;    /* in use */
  bool on_trial;     /* since one gave way nobody has proved good */
  bool served;       /* since then somebody has been ready */
  int64_t served_at; /* when the last one was, as now_ms() */
} self;

static void set(char **text, char *value)
{
  free(*text);
  *text = value;
}

/* Programs are few and never freed: one may be in use in two places. */
static void forget(struct how *how)
{
  set(&how->settings, NULL);
  how->program = NULL;
}

/* The words that follow one another in `text`, which they stay in; NULL: there is none. */
static char **read_program(char *text)
{
  size_t count = 0;
  char **program = calloc(PROGRAM_WORDS + 1, sizeof *program), *rest = text;
  while (program != NULL && count < PROGRAM_WORDS && rest != NULL) program[count++] = strsep(&rest, WORD_END);
  return count == 0 ? NULL : program;
}

void keep_reload(const char *values)
{
  const char *space = strchr(values, ' ');
  if (space == NULL) return;
  forget(&self.next);
  set(&self.tag, strndup(values, (size_t)(space - values)));
  char *settings = strdup(space + 1), *program = settings;
  if (settings == NULL) return;
  strsep(&program, WORD_END);
  if (program != NULL) self.next.program = read_program(strdup(program));
  self.next.settings = settings;
}

bool begin_reload(void)
{
  const char *current = getenv(SETTINGS), *crashes = getenv("WSFS_RESTARTS");
  if (self.tag == NULL || self.next.settings == NULL || current == NULL) return false;
  forget(&self.before);
  self.before = (struct how){strdup(current), self.program};
  if (self.next.program != NULL) self.program = self.next.program;
  /* Without memory for it the daemon goes on with what there is. */
  if (crashes == NULL || *crashes == '\0') setenv("WSFS_RESTARTS", "0", 1);
  setenv(SETTINGS, self.next.settings, 1);
  setenv(RELOAD, self.tag, 1);
  forget(&self.next);
  self.on_trial = true;
  self.served = false;
  prctl(PR_SET_NAME, NAME_WAITING);
  return true;
}

char **program_in_use(char **named)
{
  return self.program == NULL ? named : self.program;
}

bool reload_is_open(void)
{
  return self.on_trial && !self.served;
}

bool reload_is_on_trial(void)
{
  return self.on_trial;
}

bool take_reload_back(const char *why)
{
  if (self.before.settings == NULL) return false;
  char text[LINE_LENGTH];
  snprintf(text, sizeof text, "%s %s", self.tag, why);
  setenv(RELOAD, text, 1);
  setenv(SETTINGS, self.before.settings, 1);
  self.program = self.before.program;
  forget(&self.before);
  return true;
}

void close_reload(int64_t now_ms)
{
  forget(&self.next);
  self.served = true;
  self.served_at = now_ms;
  prctl(PR_SET_NAME, NAME);
}

void judge_reload(int64_t now_ms)
{
  if (self.on_trial && now_ms - self.served_at >= TRIAL_MS) {
    forget(&self.before);
    self.on_trial = false;
  }
  if (self.on_trial) prctl(PR_SET_NAME, NAME_WAITING);
}
