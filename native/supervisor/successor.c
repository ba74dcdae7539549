/* The limit and the pauses with which a dead daemon is replaced, and the environment of its successor. */
#include "supervisor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MINUTE_MS 60000
#define FIRST_WAIT_MS 100 /* doubled with each further crash */
#define DOUBLINGS_MAX 5
#define START_AGAIN_MS 1000

int count_crash(struct crashes *crashes, int limit, bool served, int64_t now_ms)
{
  int recent = 1;
  for (int i = 0; i < CRASHES_KEPT && i < crashes->total; i++) {
    if (now_ms - crashes->at[i] < MINUTE_MS) recent++;
  }
  crashes->at[crashes->total % CRASHES_KEPT] = now_ms;
  crashes->total++;
  crashes->recent = recent;
  if (recent >= limit) return -1;
  if (served) return 0;
  return FIRST_WAIT_MS << (recent - 1 < DOUBLINGS_MAX ? recent - 1 : DOUBLINGS_MAX);
}

int judge_start(struct crashes *crashes, int error, int silence_s, int64_t now_ms)
{
  int64_t since = crashes->failing_since != 0 ? crashes->failing_since : now_ms;
  crashes->failing_since = error == 0 ? 0 : since;
  if (error == 0) return 0;
  if (now_ms - since >= (int64_t)silence_s * 1000) return -1;
  if (since == now_ms) say("cannot start the daemon: %s; it is tried again", strerror(error));
  return START_AGAIN_MS;
}

bool is_near_limit(const struct crashes *crashes, int limit)
{
  return crashes->recent >= limit - 2;
}

void forget_crashes(struct crashes *crashes)
{
  crashes->before += crashes->total;
  crashes->total = crashes->recent = 0;
}

static void describe(bool killed, const char *how, const char *often, const char *cause, char *text, size_t size)
{
  snprintf(text, size, "%s (%s)%s%s%s",
           killed ? "the daemon gave no sign of life and was killed" : "the daemon ended unexpectedly", how, often,
           *cause == '\0' ? "" : ": ", cause);
}

void describe_death(bool killed, const char *how, const char *cause, char *text, size_t size)
{
  describe(killed, how, "", cause, text, size);
}

void describe_loss(const struct crashes *crashes, int limit, bool killed, const char *how, const char *cause,
                   char *text, size_t size)
{
  char often[64] = "";
  if (crashes->recent > 1 && crashes->recent >= limit) {
    snprintf(often, sizeof often, ", %d times within a minute", crashes->recent);
  }
  describe(killed, how, often, cause, text, size);
}

int crashes_told(void)
{
  const char *told = getenv("WSFS_RESTARTS");
  return told == NULL ? 0 : atoi(told);
}

void tell_fault(bool of_itself)
{
  setenv("WSFS_DIED_OF_ITSELF", of_itself ? "1" : "0", 1);
}

void tell_successor(int crashes, const char *why)
{
  char text[LINE_LENGTH];
  snprintf(text, sizeof text, "%d %s", crashes, why);
  setenv("WSFS_RESTARTS", text, 1); /* without memory for it, the successor takes itself for a first one and refuses */
}
