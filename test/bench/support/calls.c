/*
 * System calls timed in the process that makes them, so that its start does not count. Knows
 * nothing of what serves the files. The last line of output is {"seconds": S, "count": N}.
 *
 *   calls write FILE BYTES BLOCK      create, write calls of BLOCK bytes, close; counts bytes
 *   calls read FILE BLOCK             open, read to the end, close; counts bytes
 *   calls first FILE                  open, read of one byte, close
 *   calls random FILE BLOCK READS     open, READS reads of BLOCK bytes at places drawn the same each time, close
 *   calls stat DIR FILES PASSES       stat of each of the files, after one pass that is not timed
 *   calls open DIR FILES              open, read whole, close of each, after one pass that is not timed
 *   calls create DIR FILES BYTES      create, one write, close of each
 *   calls run CODES PROGRAM ARG...    from fork to the program's end, its exit code one of the digits CODES
 *   calls evict FILE...               the pages of these files leave the page cache; not timed
 *
 * Files of a folder are f0000, f0001, ...
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void fail(const char *what, const char *path)
{
  fprintf(stderr, "calls: %s %s: %s\n", what, path, strerror(errno));
  exit(1);
}

static long number(const char *text)
{
  char *end;
  long value = strtol(text, &end, 10);
  if (*text == '\0' || *end != '\0' || value <= 0) {
    fprintf(stderr, "calls: expected a number over 0, got \"%s\"\n", text);
    exit(2);
  }
  return value;
}

static char *buffer_of(long size)
{
  char *buffer = malloc((size_t)size);
  if (buffer == NULL)
    fail("memory for", "a buffer");
  /* Every page is written, or the kernel would copy from one page of zeros. */
  for (long at = 0; at < size; at++)
    buffer[at] = (char)('a' + (at * 7 + at / 61) % 26);
  return buffer;
}

static const char *file_in(const char *dir, long index)
{
  static char path[4096];
  snprintf(path, sizeof path, "%s/f%04ld", dir, index);
  return path;
}

static int open_or_fail(const char *path, int flags)
{
  int fd = open(path, flags, 0644);
  if (fd < 0)
    fail("open", path);
  return fd;
}

static void write_all(int fd, const char *path, const char *buffer, long size)
{
  if (write(fd, buffer, (size_t)size) != size)
    fail("write", path);
}

static void close_or_fail(int fd, const char *path)
{
  if (close(fd) != 0)
    fail("close", path);
}

static long read_whole(const char *path, char *buffer, long block)
{
  int fd = open_or_fail(path, O_RDONLY);
  long total = 0;
  for (;;) {
    ssize_t got = read(fd, buffer, (size_t)block);
    if (got < 0)
      fail("read", path);
    if (got == 0)
      break;
    total += got;
  }
  close_or_fail(fd, path);
  return total;
}

/* Places are multiples of the block, drawn by xorshift. */
static void read_randomly(const char *path, char *buffer, long block, long reads)
{
  int fd = open_or_fail(path, O_RDONLY);
  struct stat status;
  if (fstat(fd, &status) != 0)
    fail("fstat", path);
  unsigned long blocks = (unsigned long)(status.st_size / block), state = 88172645463325252UL;
  if (blocks == 0) {
    fprintf(stderr, "calls: %s has no whole block\n", path);
    exit(1);
  }
  for (long index = 0; index < reads; index++) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    if (pread(fd, buffer, (size_t)block, (off_t)(state % blocks) * block) != block)
      fail("pread", path);
  }
  close_or_fail(fd, path);
}

static void stat_each(const char *dir, long files)
{
  struct stat status;
  for (long index = 0; index < files; index++) {
    const char *path = file_in(dir, index);
    if (stat(path, &status) != 0)
      fail("stat", path);
  }
}

static void open_each(const char *dir, long files, char *buffer, long block)
{
  for (long index = 0; index < files; index++) {
    const char *path = file_in(dir, index);
    if (read_whole(path, buffer, block) == 0) {
      fprintf(stderr, "calls: %s is empty\n", path);
      exit(1);
    }
  }
}

static void run(const char *codes, char **command)
{
  int status;
  pid_t child = fork();
  if (child < 0)
    fail("fork for", command[0]);
  if (child == 0) {
    execvp(command[0], command);
    fail("exec", command[0]);
  }
  if (waitpid(child, &status, 0) != child)
    fail("wait for", command[0]);
  if (WIFEXITED(status) && WEXITSTATUS(status) < 10 && strchr(codes, '0' + WEXITSTATUS(status)) != NULL)
    return;
  fprintf(stderr, "calls: %s ended with status %d\n", command[0], status);
  exit(1);
}

static void evict(const char *path)
{
  int fd = open_or_fail(path, O_RDONLY);
  /* Dirty pages stay. */
  if (fdatasync(fd) != 0 || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) != 0)
    fail("evict", path);
  close_or_fail(fd, path);
}

static int report(double started, long count)
{
  printf("{\"seconds\": %.9f, \"count\": %ld}\n", now() - started, count);
  return 0;
}

int main(int argc, char **argv)
{
  const char *what = argc > 1 ? argv[1] : "";
  const char *where = argc > 2 ? argv[2] : "";
  double started;

  if (strcmp(what, "write") == 0 && argc == 5) {
    long bytes = number(argv[3]), block = number(argv[4]);
    char *buffer = buffer_of(block);
    started = now();
    int fd = open_or_fail(where, O_WRONLY | O_CREAT | O_TRUNC);
    for (long at = 0; at < bytes; at += block)
      write_all(fd, where, buffer, bytes - at < block ? bytes - at : block);
    close_or_fail(fd, where);
    return report(started, bytes);
  }
  if (strcmp(what, "read") == 0 && argc == 4) {
    long block = number(argv[3]);
    char *buffer = buffer_of(block);
    started = now();
    long total = read_whole(where, buffer, block);
    return report(started, total);
  }
  if (strcmp(what, "first") == 0 && argc == 3) {
    started = now();
    char byte;
    int fd = open_or_fail(where, O_RDONLY);
    if (read(fd, &byte, 1) != 1)
      fail("read", where);
    close_or_fail(fd, where);
    return report(started, 1);
  }
  if (strcmp(what, "random") == 0 && argc == 5) {
    long block = number(argv[3]), reads = number(argv[4]);
    char *buffer = buffer_of(block);
    started = now();
    read_randomly(where, buffer, block, reads);
    return report(started, reads);
  }
  if (strcmp(what, "stat") == 0 && argc == 5) {
    long files = number(argv[3]), passes = number(argv[4]);
    stat_each(where, files);
    started = now();
    for (long pass = 0; pass < passes; pass++)
      stat_each(where, files);
    return report(started, files * passes);
  }
  if (strcmp(what, "open") == 0 && argc == 4) {
    long files = number(argv[3]), block = 128 * 1024;
    char *buffer = buffer_of(block);
    open_each(where, files, buffer, block);
    started = now();
    open_each(where, files, buffer, block);
    return report(started, files);
  }
  if (strcmp(what, "create") == 0 && argc == 5) {
    long files = number(argv[3]), bytes = number(argv[4]);
    char *buffer = buffer_of(bytes);
    started = now();
    for (long index = 0; index < files; index++) {
      const char *path = file_in(where, index);
      int fd = open_or_fail(path, O_WRONLY | O_CREAT | O_EXCL);
      write_all(fd, path, buffer, bytes);
      close_or_fail(fd, path);
    }
    return report(started, files);
  }
  if (strcmp(what, "run") == 0 && argc >= 4) {
    started = now();
    run(where, argv + 3);
    return report(started, 1);
  }
  if (strcmp(what, "evict") == 0 && argc >= 3) {
    for (int index = 2; index < argc; index++)
      evict(argv[index]);
    return report(now(), argc - 2);
  }
  fprintf(stderr, "calls: see the head of calls.c for what it does\n");
  return 2;
}
