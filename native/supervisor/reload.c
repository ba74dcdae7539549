/*
 * A daemon gives way to a successor on purpose. This file keeps the settings and the program of the successor, and the
 * former ones, which are used again if the successor never serves or soon dies (the trial). Settings are opaque text
 * for the daemon's environment. The state of the trial is in that environment too: if we die, the daemon starts another
 * supervisor with its own environment, and that supervisor reads the state there.
 */
#include "supervisor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#define SETTINGS "WSFS_DAEMON_SETTINGS"
#define RELOAD "WSFS_RELOAD" /* "TAG", or "TAG WHY" when it failed; of the last reload */
#define TRIAL "WSFS_TRIAL"   /* during a trial: the side not in use, its settings, and the words of its program */
#define BEFORE "before "
#define AFTER "after "
#define WORD_END "\x1f"
#define PROGRAM_WORDS 16
#define TRIAL_MS 60000 /* a daemon that has served this long without a break has proved good */

/* The settings and the program of a daemon. program NULL: the one on the command line. */
struct how {
  char *settings, **program;
};

static struct {
  char *tag;         /* of the reload on trial */
  char *next_tag;    /* of `next` */
  struct how next;   /* the reload that was asked for; settings NULL: none */
  struct how other;  /* of the daemon that gave way, or of the reload that was taken back; settings NULL: none */
  bool is_back;      /* the reload was taken back */
  char **program;    /* the program in use */
  bool on_trial;     /* since a daemon gave way, none has proved good */
  bool served;       /* since then a daemon has been ready */
  int64_t served_at; /* when the last one became ready, as now_ms() */
} self;

static void set(char **text, char *value)
{
  free(*text);
  *text = value;
}

/* Programs are never freed, because one may be in use in two places. There are few. */
static void forget(struct how *how)
{
  set(&how->settings, NULL);
  how->program = NULL;
}

/* The words in `text`, which stay in that memory. NULL: there is none. */
static char **read_program(char *text)
{
  size_t count = 0;
  char **program = calloc(PROGRAM_WORDS + 1, sizeof *program), *rest = text;
  while (program != NULL && count < PROGRAM_WORDS && rest != NULL) program[count++] = strsep(&rest, WORD_END);
  return count == 0 ? NULL : program;
}

/* Settings, followed by the words of a program if there are any. */
static void read_how(const char *text, struct how *how)
{
  char *settings = strdup(text), *program = settings;
  if (settings == NULL) return;
  strsep(&program, WORD_END);
  if (program != NULL) how->program = read_program(strdup(program));
  how->settings = settings;
}

void keep_reload(const char *values)
{
  const char *space = strchr(values, ' ');
  if (space == NULL) return;
  forget(&self.next);
  set(&self.next_tag, strndup(values, (size_t)(space - values)));
  read_how(space + 1, &self.next);
}

/*
 * Tells the trial's state to the next process. The limit of a daemon's settings leaves room for it
 * (SETTINGS_BYTES_MAX).
 */
static void tell_trial(void)
{
  static char text[RELOAD_LENGTH - sizeof TRIAL - 1];
  if (!self.on_trial) {
    unsetenv(TRIAL);
    return;
  }
  size_t length = 0;
  if (self.other.settings != NULL) {
    length = (size_t)snprintf(text, sizeof text, "%s%s", self.is_back ? AFTER : BEFORE, self.other.settings);
    for (char **word = self.other.program; word != NULL && *word != NULL && length < sizeof text; word++) {
      length += (size_t)snprintf(text + length, sizeof text - length, WORD_END "%s", *word);
    }
  }
  setenv(TRIAL, length < sizeof text ? text : "", 1);
}

static void await_somebody(void)
{
  self.served = false;
  prctl(PR_SET_NAME, NAME_WAITING);
}

bool begin_reload(char **named)
{
  const char *current = getenv(SETTINGS), *crashes = getenv("WSFS_RESTARTS");
  if (self.next_tag == NULL || self.next.settings == NULL || current == NULL) return false;
  forget(&self.other);
  self.other = (struct how){strdup(current), program_in_use(named)};
  if (self.next.program != NULL) self.program = self.next.program;
  /* Without memory for it, the daemon goes on with the present settings. */
  if (crashes == NULL || *crashes == '\0') setenv("WSFS_RESTARTS", "0", 1);
  setenv(SETTINGS, self.next.settings, 1);
  set(&self.tag, self.next_tag);
  self.next_tag = NULL;
  setenv(RELOAD, self.tag, 1);
  forget(&self.next);
  self.on_trial = true;
  self.is_back = false;
  tell_trial();
  await_somebody();
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

/* From now on the other side is used. */
static void change_sides(char **named)
{
  struct how used = {strdup(getenv(SETTINGS)), program_in_use(named)};
  setenv(SETTINGS, self.other.settings, 1);
  self.program = self.other.program;
  forget(&self.other);
  self.other = used;
}

bool take_reload_back(char **named, const char *why)
{
  if (self.other.settings == NULL || self.is_back) return false;
  char text[LINE_LENGTH];
  snprintf(text, sizeof text, "%s %s", self.tag, why);
  setenv(RELOAD, text, 1);
  change_sides(named);
  self.is_back = true;
  tell_trial();
  say("the new daemon cannot serve: %s; a daemon with the old settings takes over", why);
  return true;
}

/* State that a later release has written is not given up: it may contain changes that are nowhere else. */
bool stay_with_reload(char **named, const char *why)
{
  if (self.other.settings == NULL || !self.is_back) return false;
  setenv(RELOAD, self.tag, 1);
  change_sides(named);
  forget(&self.other);
  self.is_back = false;
  tell_trial();
  await_somebody();
  say("the release before cannot serve any more: %s; the new one is tried again", why);
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
    forget(&self.other);
    self.on_trial = false;
    tell_trial();
  }
  if (self.on_trial) prctl(PR_SET_NAME, NAME_WAITING);
}

void adopt_reload(int served_ms, int64_t now_ms)
{
  const char *told = getenv(TRIAL), *tag = getenv(RELOAD);
  if (told == NULL || tag == NULL) return;
  self.on_trial = true;
  self.tag = strndup(tag, strcspn(tag, " "));
  self.is_back = strncmp(told, AFTER, strlen(AFTER)) == 0;
  const char *space = strchr(told, ' ');
  if (space != NULL) read_how(space + 1, &self.other);
  if (served_ms < 0) await_somebody();
  else close_reload(now_ms - served_ms);
}
