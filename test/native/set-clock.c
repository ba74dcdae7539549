/*
 * The supervisor's clock, ahead of the real one by what WSFS_AHEAD_FILE says, in milliseconds. Linked into a copy of it
 * (--wrap=now_ms), so that a test need not wait for minutes.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int64_t __real_now_ms(void);
int64_t __wrap_now_ms(void);

int64_t __wrap_now_ms(void)
{
  const char *path = getenv("WSFS_AHEAD_FILE");
  FILE *file = path == NULL ? NULL : fopen(path, "re");
  long ahead = 0;
  if (file != NULL && fscanf(file, "%ld", &ahead) != 1) ahead = 0;
  if (file != NULL) fclose(file);
  return __real_now_ms() + ahead;
}
