/* The command line of the supervisor. */
#include "supervisor.h"

#include <fcntl.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
  "usage: wsfs-supervisor --mountpoint DIR --source NAME --options OPTS [--read-only] [--status-fd N]\n"
  "       [--silence SECONDS] [--crashes N] -- PROGRAM ARG...\n"
  "       wsfs-supervisor --adopt PID --control-fd N --device-fd N --mountpoint DIR [--served MS] [--silence SECONDS]\n"
  "       [--crashes N] -- PROGRAM ARG...";

static void __attribute__((noreturn, format(printf, 1, 2))) refuse(const char *format, ...)
{
  va_list values;
  va_start(values, format);
  fputs("wsfs-supervisor: ", stderr);
  vfprintf(stderr, format, values);
  fprintf(stderr, "\n%s\n", usage);
  va_end(values);
  exit(2);
}

static int read_number(const char *name, const char *text, int least)
{
  char *end;
  long number = strtol(text, &end, 10);
  if (*text == '\0' || *end != '\0' || number < least || number > INT_MAX) {
    refuse("%s: expected a number from %d, got '%s'", name, least, text);
  }
  return (int)number;
}

static int read_descriptor(const char *name, const char *text)
{
  int fd = read_number(name, text, STDERR_FILENO + 1);
  if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0) refuse("%s: descriptor %d is not open", name, fd);
  return fd;
}

struct options read_options(int argc, char **argv)
{
  static const struct option known[] = {
    {"mountpoint", required_argument, NULL, 'm'},
    {"source", required_argument, NULL, 's'},
    {"options", required_argument, NULL, 'o'},
    {"read-only", no_argument, NULL, 'r'},
    {"status-fd", required_argument, NULL, 'f'},
    {"silence", required_argument, NULL, 'q'},
    {"adopt", required_argument, NULL, 'p'},
    {"control-fd", required_argument, NULL, 'c'},
    {"device-fd", required_argument, NULL, 'd'},
    {"served", required_argument, NULL, 'u'},
    {"crashes", required_argument, NULL, 'a'},
    {NULL, 0, NULL, 0},
  };
  struct options options = {.extra = "", .status_fd = -1, .control_fd = -1, .device_fd = -1, .served_ms = -1, .silence = 30};
  opterr = 0;
  for (int letter; (letter = getopt_long(argc, argv, "+:", known, NULL)) != -1;) {
    switch (letter) {
    case 'm': options.mountpoint = optarg; break;
    case 's': options.source = optarg; break;
    case 'o': options.extra = optarg; break;
    case 'r': options.read_only = true; break;
    case 'f': options.status_fd = read_descriptor("--status-fd", optarg); break;
    case 'p': options.adopted = read_number("--adopt", optarg, 1); break;
    case 'c': options.control_fd = read_descriptor("--control-fd", optarg); break;
    case 'd': options.device_fd = read_descriptor("--device-fd", optarg); break;
    case 'u': options.served_ms = read_number("--served", optarg, 0); break;
    case 'a': options.crashes = read_number("--crashes", optarg, 1); break;
    case 'q': options.silence = read_number("--silence", optarg, 1); break;
    case ':': refuse("%s needs a value", argv[optind - 1]);
    default: refuse("unknown option %s", argv[optind - 1]);
    }
  }
  if (options.mountpoint == NULL || *options.mountpoint == '\0') refuse("--mountpoint is missing");
  if (options.adopted != 0 && (options.control_fd < 0 || options.device_fd < 0)) {
    refuse("--adopt needs --control-fd and --device-fd");
  }
  if (options.adopted != 0) options.source = "adopted";
  if (options.source == NULL || *options.source == '\0') refuse("--source is missing");
  if (optind >= argc) refuse("the program to run is missing");
  options.program = argv + optind;
  return options;
}
