/*
 * What the files of the supervisor share. The supervisor mounts, holds the /dev/fuse descriptor,
 * runs the daemon on it and detaches the mount. It is small so that it has no reason to die. It
 * knows nothing of requests, and never touches the mounted folder itself: whatever could wait for
 * the daemon is done by a child process (unmount.c).
 */
#ifndef WSFS_SUPERVISOR_H
#define WSFS_SUPERVISOR_H

#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define LINE_LENGTH 4096 /* of a message on the control socket, and of one on stderr */

#define NAME "wsfs-supervisor"
#define NAME_WAITING "wsfs-waiting" /* while nobody serves after a reload; commands look for it */

/* options.c */
struct options {
  const char *mountpoint;
  const char *source;
  const char *extra; /* mount options, separated by commas; never NULL */
  bool read_only;
  int status_fd; /* -1: none */
  /* A daemon that serves already, its supervisor having died; 0: none */
  pid_t adopted;
  int control_fd; /* of that daemon */
  int served_ms;  /* for how long that daemon has served; -1: it has not said yet that it does */
  int device_fd;  /* of that daemon, or one that a daemon has mounted itself; -1: none */
  int crashes;   /* so many within a minute end the mount; before, a daemon that dies gets a successor */
  int silence;   /* seconds without a sign of life after which the daemon is killed */
  char **program; /* argv of the daemon */
};
/* Ends the process with exit code 2 and one line when the command line is wrong. */
struct options read_options(int argc, char **argv);

/* starter.c: whoever started us. */

/* One line on standard error. */
void __attribute__((format(printf, 1, 2))) say(const char *format, ...);
/* Lost when the reader does not read: it must not make us wait. */
void write_note(int status_fd, const char *text);
/* Whoever started us waits for this line, the last one. */
void write_status(int *status_fd, const char *line);
/* Both: why there is no mount, or none any more. */
void __attribute__((format(printf, 3, 0))) write_failure(int *status_fd, int code, const char *format, va_list values);

/* process.c: child processes, and the control socket of the daemon. */

/* Opens descriptors 0 to 2 where the caller left them closed, and closes all others but `keep`. */
void settle_descriptors(int keep);
/*
 * In a child after fork and setsid: signals as a program expects them, those sent to the
 * supervisor's group meanwhile forgotten; no descriptor from `first_closed` on.
 */
void become_child(int first_closed);
/* The daemon in a session of its own, its control socket as descriptor 3. 0 or an errno. */
int start_daemon(char **program, pid_t *pid, int *control);
/* One line; `descriptor` -1: none. What is wrong with whoever reads it shows otherwise. */
void send_line(int control, const char *line, int descriptor);
/*
 * Length of the line (NUL-terminated), 0 when the daemon closed its end, -EAGAIN when none is there, -errno.
 * A descriptor that came with it is stored, and the one that stood there closed.
 */
int receive_line(int control, char *line, size_t size, int *descriptor);
/*
 * Whether this process is dead, though threads of it may still sit in the kernel, where nothing reaches them:
 * until they return it cannot be waited for. Stores its wait status.
 */
bool is_dead(pid_t pid, int *status);
/* How a process ended, by its wait status. */
void describe_end(int status, char *text, size_t size);
/* By kill -9: somebody may do so at any time. So does the kernel, to who takes too much memory. */
bool was_killed(int status);
/* Whether one of the signals that came on take_signals' descriptor asks us to end. */
bool asks_to_end(int signals);
/* A descriptor that tells of children that ended, and of what asks us to end. -1: errno is set. */
int take_signals(void);
/* Of a clock that nobody sets. */
int64_t now_ms(void);

/* fusermount.c: the set-user-id program that mounts for ordinary users. */

/*
 * Runs fusermount3 with these arguments and waits for it. With `device` it mounts and stores the
 * descriptor there. 0 or an errno: ENOENT when it is not installed, EBUSY, EPERM for all else.
 * `message` then holds its first line of stderr.
 */
int run_fusermount(const char *const *arguments, int *device, char *message, size_t size);

/* mount.c */
struct mount {
  int device;          /* /dev/fuse of this mount; -1: none */
  unsigned connection; /* its number: minor of the mount's st_dev */
  int id;              /* of the mount, as in mountinfo */
  uint64_t unique;     /* of the mount, never given again; 0: the kernel does not tell */
};
/* Or takes the mount of options->device_fd over. False: `reason` holds one line without newline; nothing is mounted by us then. */
bool mount_device(const struct options *options, struct mount *mount, char *reason, size_t size);
/* The mount of this device, which somebody else has made; false: it is not there any more. */
bool find_mount_of_device(int device, struct mount *mount);

/* mount-table.c: which mounts there are. */
struct table_entry {
  int id;
  unsigned minor;
  char path[PATH_MAX];
};
/* What shows at this path, if it is a wsfs. */
bool find_mount_at(const char *path, struct table_entry *entry);
/* The first mount of a connection that was made, wherever it is. */
bool find_mount_of(unsigned connection, struct table_entry *entry);
/* The ids of all mounts of a connection, at most `size`. */
size_t list_mounts_of(unsigned connection, int *ids, size_t size);
/* Whether another mount was at its place before. */
bool covers_another(const struct table_entry *entry);
/* Where our mount is now; false: it is there no more. */
bool find_our_mount(const struct mount *mount, struct table_entry *entry);
/*
 * Whether the kernel still sends requests to this device. While it does, the number of its
 * connection is given to no other; it is given again at once when the last mount of it is gone.
 */
bool is_connected(int device);

/* mount-id.c: mounts by the number that is never given again (Linux 6.8). */

/* Of the mount that shows at this path; 0: the kernel does not tell. Asks no daemon. */
uint64_t unique_id_at(const char *path);
/* 0, ENOENT when there is no such mount (any more), another errno when the kernel does not tell. */
int find_mount_by_unique_id(uint64_t unique, struct table_entry *entry);

/* adopt.c: a daemon that is no child of ours. */

/* A descriptor that is readable once our parent has ended. -1: errno is set, to ESRCH when this is not our parent (any more). */
int open_parent(pid_t pid);
void kill_process(int process);

/* successor.c: how often a daemon that dies is replaced. */
#define CRASHES_KEPT 64
struct crashes {
  int64_t at[CRASHES_KEPT]; /* the last ones, in a ring */
  int total;
  int recent; /* within a minute, when the last one was counted */
  int before; /* this supervisor, which a daemon has started */
  int64_t failing_since; /* when the next daemon was first tried to be started, where that failed; 0: it did not */
};
/* Milliseconds to wait before the next start, none after a daemon that had `served`; -1: that was one too many. */
int count_crash(struct crashes *crashes, int limit, bool served, int64_t now_ms);
/*
 * A start that has failed says nothing of any daemon: there is no process to be had, it may be, for a moment. `error`: 0, it
 * did not. Milliseconds to wait before the next try; -1: it was tried for as long as a daemon may be silent.
 */
int judge_start(struct crashes *crashes, int error, int silence_s, int64_t now_ms);
/* Those of a daemon with other settings say nothing of the next; they stay counted as restarts. */
void forget_crashes(struct crashes *crashes);
/* Two more like the last one end the mount: whatever they died of, what was at hand each time is to blame rather. */
bool is_near_limit(const struct crashes *crashes, int limit);
/* Puts it into the environment of the daemon that is started next. */
void tell_successor(int crashes, const char *why);
/* Also whether the one before died of itself: by what it had at hand, maybe. */
void tell_fault(bool of_itself);
/* What the log, and those who come after it, are told of a daemon that died; `cause`: its own words, or "". */
void describe_death(bool killed, const char *how, const char *cause, char *text, size_t size);
/* The same of the last one, which has no successor; `limit`: as of count_crash. */
void describe_loss(const struct crashes *crashes, int limit, bool killed, const char *how, const char *cause,
                   char *text, size_t size);
/* What the supervisor before has told, of this mount. */
int crashes_told(void);

/* reload.c: a daemon that gives way to a successor, of its own will. */
#define RELOAD_LENGTH (128 * 1024) /* of its word for that: the longest string an environment takes */
/* "TAG SETTINGS", and the words of a program, each after a unit separator; TAG is told to whoever comes next. */
void keep_reload(const char *values);
/* `named`, here and below: the program on the command line. */
/* For the daemon that is started next: what was asked for. False: nothing was. */
bool begin_reload(char **named);
char **program_in_use(char **named);
/* Nobody has served since one gave way. */
bool reload_is_open(void);
/* Nobody has served for long since one gave way: the mount is kept until somebody does. */
bool reload_is_on_trial(void);
/* For the daemon that is started next: as the one that gave way. False: it is so already, or one has proved good since. */
bool take_reload_back(char **named, const char *why);
/* For the daemon that is started next: after all as the one that was taken back, for none of before can serve. False: none was. */
bool stay_with_reload(char **named, const char *why);
/* A daemon serves. */
void close_reload(int64_t now_ms);
/* The daemon that serves has died: one that did for long has proved good. */
void judge_reload(int64_t now_ms);
/* What the supervisor before us knew of one on trial; `served_ms` as in the options. */
void adopt_reload(int served_ms, int64_t now_ms);

/* unmount.c */
enum unmount_how {
  UNMOUNT_IF_FREE, /* EBUSY while programs use it */
  UNMOUNT_LAZILY,  /* detached at once; ends when the last file is closed */
  UNMOUNT_BY_FORCE /* detached with its copies, and all requests under way fail: for a daemon that is dead */
};
/* Starts a child that does it: its exit status is 0 or an errno (0 too when our mount is gone). -1: errno is set. */
pid_t start_unmount(const struct mount *mount, enum unmount_how how);
/* Starts a child that detaches every mount of the connection, such as bind mounts. -1: errno is set. */
pid_t start_detaching_copies(const struct mount *mount);

#endif
