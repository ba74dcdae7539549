/* How often a daemon that dies is replaced, how soon, and what its successor is told. */
#include "supervisor.h"

#include <stdio.h>
#include <stdlib.h>

#define MINUTE_MS 60000
#define FIRST_WAIT_MS 100 /* doubled with each further crash; the first successor comes at once */

int count_crash(struct crashes *crashes, int64_t now_ms)
{
  int recent = 1;
  for (int i = 0; i < CRASHES_MAX && i < crashes->total; i++) {
    if (now_ms - crashes->at[i] < MINUTE_MS) recent++;
  }
  crashes->at[crashes->total % CRASHES_MAX] = now_ms;
  crashes->total++;
  if (recent >= CRASHES_MAX) return -1;
  return recent == 1 ? 0 : FIRST_WAIT_MS << (recent - 2);
}

void tell_successor(int crashes, const char *why)
{
  char text[LINE_LENGTH];
  snprintf(text, sizeof text, "%d %s", crashes, why);
  setenv("WSFS_RESTARTS", text, 1); /* without memory for it the successor takes itself for a first daemon, and refuses */
}
