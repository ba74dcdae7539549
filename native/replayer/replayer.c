/*
 * Replays remote changes through the mount, so that the kernel tells the programs that watch the mount (inotify,
 * fanotify). The kernel reports only changes that come through the mount. The daemon of the mount knows the calls of
 * this process: it answers them as if they made the change, and changes nothing (src/engine/remote/replayed.ts).
 *
 * Usage: wsfs-replayer MOUNTPOINT CONNECTION DAEMON
 *
 * A command is five fields on standard input, each ended by a zero byte: a word and its arguments, the rest empty. Each
 * is answered by a line with 0 or an errno. "watched" is answered by the inode numbers in this mount that are watched,
 * with 0 among them when all of it is watched. Nothing is held open between two commands, so that the mount can be
 * unmounted. The process ends with its input. It is killed with its daemon, whose process id is DAEMON: a later daemon
 * would take its calls for those of a program.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define FIELDS 5
#define FIELD_MAX 8192 /* a path and more */

static const char *mountpoint;
static unsigned connection;

/* The mount's root, or a folder below it by its path; never a mount that lies over either. -1: errno is set. */
static int open_folder(const char *path)
{
  int root = open(mountpoint, O_PATH | O_DIRECTORY | O_CLOEXEC);
  struct stat stat;
  if (root < 0) return -1;
  if (fstat(root, &stat) < 0 || stat.st_dev != makedev(0, connection)) {
    close(root);
    errno = ENODEV;
    return -1;
  }
  if (*path == '\0') return root;
  struct open_how how = {
      .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
      .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV,
  };
  int folder = (int)syscall(SYS_openat2, root, path, &how, sizeof how);
  int error = errno;
  close(root);
  errno = error;
  return folder;
}

static int result(int outcome)
{
  return outcome < 0 ? errno : 0;
}

static int make(int folder, const char *name, const char *kind)
{
  if (strcmp(kind, "folder") == 0) return result(mkdirat(folder, name, 0700));
  if (strcmp(kind, "symlink") == 0) return result(symlinkat("?", folder, name));
  if (strcmp(kind, "fifo") == 0) return result(mknodat(folder, name, S_IFIFO | 0600, 0));
  if (strcmp(kind, "socket") == 0) return result(mknodat(folder, name, S_IFSOCK | 0600, 0));
  return strcmp(kind, "file") == 0 ? result(mknodat(folder, name, S_IFREG | 0600, 0)) : EOPNOTSUPP;
}

/* Sets the present times: a call that is mistaken for a change then changes nothing. */
static int set_times(int folder, const char *name, bool only_written)
{
  struct stat stat;
  if (fstatat(folder, name, &stat, AT_SYMLINK_NOFOLLOW) < 0) return errno;
  struct timespec times[2] = {stat.st_atim, stat.st_mtim};
  if (only_written) times[0].tv_nsec = UTIME_OMIT; /* causes IN_MODIFY; both times would cause IN_ATTRIB */
  return result(utimensat(folder, name, times, AT_SYMLINK_NOFOLLOW));
}

/* Closes a file open for writing, as its writer would: IN_CLOSE_WRITE. */
static int close_written(int folder, const char *name)
{
  int fd = openat(folder, name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  return fd < 0 ? errno : result(close(fd));
}

/* True if the text is a single name within the folder. */
static bool is_name(const char *name)
{
  return *name != '\0' && strchr(name, '/') == NULL && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static int in_folder(char fields[FIELDS][FIELD_MAX])
{
  const char *word = fields[0], *name = fields[2], *kind = fields[3];
  int folder = open_folder(fields[1]);
  int error = EINVAL;
  if (folder < 0) return errno;
  if (!is_name(name) || (strcmp(word, "moved") == 0 && !is_name(fields[4]))) word = "no name";
  if (strcmp(word, "made") == 0) error = make(folder, name, kind);
  if (strcmp(word, "gone") == 0) error = result(unlinkat(folder, name, strcmp(kind, "folder") == 0 ? AT_REMOVEDIR : 0));
  if (strcmp(word, "attributes") == 0) error = set_times(folder, name, false);
  if (strcmp(word, "written") == 0) error = set_times(folder, name, true);
  if (strcmp(word, "closed") == 0) error = close_written(folder, name);
  if (strcmp(word, "look") == 0) error = result(faccessat(folder, name, F_OK, AT_SYMLINK_NOFOLLOW));
  if (strcmp(word, "moved") == 0) {
    int target = open_folder(fields[3]);
    error = target < 0 ? errno : result(renameat2(folder, name, target, fields[4], RENAME_NOREPLACE));
    if (target >= 0) close(target);
  }
  close(folder);
  return error;
}

/* Prints the inodes in the mount that one descriptor of a process watches. */
static void print_watched(int process, const char *fd)
{
  char path[280], line[1024];
  snprintf(path, sizeof path, "fdinfo/%s", fd);
  int info = openat(process, path, O_RDONLY | O_CLOEXEC);
  FILE *file = info < 0 ? NULL : fdopen(info, "r");
  if (file == NULL) {
    if (info >= 0) close(info);
    return;
  }
  while (fgets(line, sizeof line, file) != NULL) {
    const char *inode = strstr(line, " ino:"), *device = strstr(line, " sdev:");
    if (strncmp(line, "inotify ", 8) != 0 && strncmp(line, "fanotify ", 9) != 0) continue;
    if (device == NULL || strtoul(device + 6, NULL, 16) != connection) continue;
    printf("%llu ", inode == NULL ? 0 : strtoull(inode + 5, NULL, 16));
  }
  fclose(file);
}

static void print_watched_by(const char *pid)
{
  int process = open(pid, O_PATH | O_DIRECTORY | O_CLOEXEC);
  int table = process < 0 ? -1 : openat(process, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *fds = table < 0 ? NULL : fdopendir(table);
  struct dirent *fd;
  if (fds == NULL && table >= 0) close(table);
  while (fds != NULL && (fd = readdir(fds)) != NULL) {
    char target[32];
    ssize_t length = readlinkat(table, fd->d_name, target, sizeof target - 1);
    if (length < 0) continue;
    target[length] = '\0';
    if (strcmp(target, "anon_inode:inotify") != 0 && strcmp(target, "anon_inode:[fanotify]") != 0) continue;
    print_watched(process, fd->d_name);
  }
  if (fds != NULL) closedir(fds);
  if (process >= 0) close(process);
}

/* Covers the processes whose descriptors this user may see. */
static void print_all_watched(void)
{
  DIR *processes = opendir("/proc");
  struct dirent *process;
  while (processes != NULL && (process = readdir(processes)) != NULL) {
    char path[sizeof "/proc/" + sizeof process->d_name];
    if (!isdigit((unsigned char)process->d_name[0])) continue;
    snprintf(path, sizeof path, "/proc/%s", process->d_name);
    print_watched_by(path);
  }
  if (processes != NULL) closedir(processes);
  printf("\n");
}

static bool read_field(char *field)
{
  for (int length = 0; length < FIELD_MAX; length++) {
    int byte = getchar();
    if (byte == EOF) return false;
    field[length] = (char)byte;
    if (byte == '\0') return true;
  }
  return false;
}

int main(int count, char **arguments)
{
  static char fields[FIELDS][FIELD_MAX];
  if (count != 4) {
    fprintf(stderr, "usage: wsfs-replayer MOUNTPOINT CONNECTION DAEMON\n");
    return 2;
  }
  pid_t daemon = (pid_t)strtol(arguments[3], NULL, 10);
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0) return 1;
  mountpoint = arguments[1];
  connection = (unsigned)strtoul(arguments[2], NULL, 10);
  umask(0);
  for (;;) {
    for (int i = 0; i < FIELDS; i++) if (!read_field(fields[i])) return 0;
    if (getppid() != daemon) return 1;
    if (strcmp(fields[0], "watched") == 0) print_all_watched();
    else printf("%d\n", in_folder(fields));
    if (fflush(stdout) != 0) return 1;
  }
}
