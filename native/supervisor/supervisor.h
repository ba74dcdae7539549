/*
 * Shared by the files of the supervisor. The supervisor mounts, holds the /dev/fuse descriptor, runs the daemon on it
 * and detaches the mount. It is small, so that it has no reason to die. It knows nothing of requests, and never touches
 * the mounted folder itself: a child process does everything that could wait for the daemon (unmount.c).
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
#define NAME_WAITING "wsfs-waiting" /* while no daemon serves after a reload; commands look for this name */

/* options.c */
struct options {
  const char *mountpoint;
  const char *source;
  const char *extra; /* mount options, separated by commas; never NULL */
  bool read_only;
  int status_fd; /* -1: none */
  /* A daemon that serves already and whose supervisor died; 0: none. */
  pid_t adopted;
  int control_fd; /* of that daemon */
  int served_ms;  /* milliseconds that daemon has served; -1: it has not said yet that it serves */
  int device_fd;  /* of that daemon, or one that a daemon has mounted itself; -1: none */
  int crashes;   /* this many within a minute end the mount; after fewer, a dead daemon gets a successor */
  int silence;   /* seconds without a heartbeat after which the daemon is killed */
  char **program; /* argv of the daemon */
};
/* Ends the process with exit code 2 and one line when the command line is wrong. */
struct options read_options(int argc, char **argv);

/* starter.c: the process that started us. */

/* Prints one line on standard error. */
void __attribute__((format(printf, 1, 2))) say(const char *format, ...);
/* Never waits: a note is dropped when the reader does not read. */
void write_note(int status_fd, const char *text);
/* The last line for the process that started us, which waits for it. */
void write_status(int *status_fd, const char *line);
/* Writes to both the reason why there is no mount, or none any more. */
void __attribute__((format(printf, 3, 0))) write_failure(int *status_fd, int code, const char *format, va_list values);

/* process.c: child processes, and the control socket of the daemon. */

/* Opens descriptors 0 to 2 if the caller left them closed, and closes all others but `keep`. */
void reset_descriptors(int keep);
/*
 * Called in a child after fork and setsid: resets the signals, drops those that were sent to the supervisor's group
 * meanwhile, and closes all descriptors from `first_closed` on.
 */
void become_child(int first_closed);
/* Starts the daemon in a session of its own, with its control socket as descriptor 3. 0 or an errno. */
int start_daemon(char **program, pid_t *pid, int *control);
/* Sends one line; `descriptor` -1: none. Failures are not returned: the end or the silence of the daemon is noticed. */
void send_line(int control, const char *line, int descriptor);
/*
 * Length of the line (NUL-terminated), 0 when the daemon closed its end, -EAGAIN when there is no line, or -errno. A
 * descriptor that came with it is stored, and the one that was stored before is closed.
 */
int receive_line(int control, char *line, size_t size, int *descriptor);
/*
 * True if this process is dead, although threads of it may still be inside the kernel, where no signal reaches them.
 * Until they return, it cannot be reaped. The wait status is stored.
 */
bool is_dead(pid_t pid, int *status);
/* Describes in words how a process ended. `status`: its wait status. */
void describe_end(int status, char *text, size_t size);
/* True if it was killed by SIGKILL. Any process of the user may send that. The kernel sends it when memory runs out. */
bool was_killed(int status);
/* True if one of the signals on take_signals' descriptor asks us to end. */
bool asks_to_end(int signals);
/* A descriptor that reports children that ended, and signals that ask us to end. -1: errno is set. */
int take_signals(void);
/* Milliseconds of a clock that is never set. */
int64_t now_ms(void);

/* fusermount.c: the set-user-id program that mounts for ordinary users. */

/*
 * Runs fusermount3 with these arguments and waits for it. With `device` it mounts and stores the descriptor there. 0 or
 * an errno: ENOENT when it is not installed, EBUSY, EPERM for all other failures. `message` then contains its first
 * line of stderr.
 */
int run_fusermount(const char *const *arguments, int *device, char *message, size_t size);

/* mount.c */
struct mount {
  int device;          /* /dev/fuse of this mount; -1: none */
  unsigned connection; /* its number: the minor of the mount's st_dev */
  int id;              /* of the mount, as in mountinfo */
  uint64_t unique;     /* of the mount, never used again; 0: the kernel does not tell */
};
/*
 * Mounts, or takes over the mount of options->device_fd. False: `reason` has one line, and nothing of ours is mounted.
 */
bool mount_device(const struct options *options, struct mount *mount, char *reason, size_t size);
/* Finds the mount of this device, which another process has made. False: it is gone. */
bool find_mount_of_device(int device, struct mount *mount);

/* mount-table.c: the mounts of this machine. */
struct table_entry {
  int id;
  unsigned minor;
  char path[PATH_MAX];
};
/* The visible mount at this path, if it is a wsfs. */
bool find_mount_at(const char *path, struct table_entry *entry);
/* The earliest mount of a connection, wherever it is. */
bool find_mount_of(unsigned connection, struct table_entry *entry);
/* The ids of all mounts of a connection, at most `size`. */
size_t list_mounts_of(unsigned connection, int *ids, size_t size);
/* True if another mount was at its place before. */
bool covers_another(const struct table_entry *entry);
/* Finds the present place of our mount. False: the mount is gone. */
bool find_our_mount(const struct mount *mount, struct table_entry *entry);
/*
 * True if the kernel still sends requests to this device. While it does, no other connection gets its number. When its
 * last mount is gone, the number may be given again at once.
 */
bool is_connected(int device);

/* mount-id.c: mounts by the number that is never used again (Linux 6.8). */

/* The id of the visible mount at this path; 0: the kernel does not tell. Sends no request to a daemon. */
uint64_t unique_id_at(const char *path);
/* 0, ENOENT when the mount is gone or never was, another errno when the kernel does not tell. */
int find_mount_by_unique_id(uint64_t unique, struct table_entry *entry);

/* adopt.c: a daemon that is not our child. */

/*
 * A descriptor that is readable when our parent has ended. -1: errno is set, to ESRCH when `pid` is not our parent (any
 * more).
 */
int open_parent(pid_t pid);
void kill_process(int process);

/* successor.c: how often a daemon that dies is replaced. */
#define CRASHES_KEPT 64
struct crashes {
  int64_t at[CRASHES_KEPT]; /* the last ones, in a ring */
  int total;
  int recent; /* within a minute, at the time of the last one */
  int before; /* before this supervisor, which a daemon has started */
  int64_t failing_since; /* since when no daemon can be started; 0: the last start worked */
};
/* Milliseconds to wait before the next start; 0 after a daemon that had `served`. -1: the limit is reached. */
int count_crash(struct crashes *crashes, int limit, bool served, int64_t now_ms);
/*
 * A failed start says nothing about a daemon: the system may have no process for a moment. `error`: 0 when the start
 * worked. Returns the milliseconds to wait before the next try. -1: the tries have taken as long as a daemon may be
 * silent.
 */
int judge_start(struct crashes *crashes, int error, int silence_s, int64_t now_ms);
/* Crashes with other settings say nothing about the next daemon. They still count as restarts. */
void forget_crashes(struct crashes *crashes);
/*
 * True if two more such crashes end the mount. Then the requests in flight are suspected, whatever the daemons died of.
 */
bool is_near_limit(const struct crashes *crashes, int limit);
/* Puts the crashes and their reason into the environment of the daemon that is started next. */
void tell_successor(int crashes, const char *why);
/* Puts into the same environment whether the last daemon died of its own fault, possibly of a request in flight. */
void tell_fault(bool of_itself);
/* The text about a daemon that died, for the log and for its successors. `cause`: the daemon's own report, or "". */
void describe_death(bool killed, const char *how, const char *cause, char *text, size_t size);
/* The text about the death of the last daemon, which has no successor. `limit`: as for count_crash. */
void describe_loss(const struct crashes *crashes, int limit, bool killed, const char *how, const char *cause,
                   char *text, size_t size);
/* The number of crashes that the supervisor before has counted for this mount. */
int crashes_told(void);

/* reload.c: a daemon that gives way to a successor on purpose. */
#define RELOAD_LENGTH (128 * 1024) /* of the reload line: the longest string of an environment */
/* "TAG SETTINGS", then the words of a program, each after a unit separator. TAG is told to the next daemon. */
void keep_reload(const char *values);
/* `named`, here and below: the program on the command line. */
/* For the daemon that is started next: uses the requested settings and program. False: no reload was requested. */
bool begin_reload(char **named);
char **program_in_use(char **named);
/* Since a daemon gave way, none has served. */
bool reload_is_open(void);
/* Since a daemon gave way, none has served for long: the mount is kept until one does. */
bool reload_is_on_trial(void);
/*
 * For the daemon that is started next: goes back to settings and program of the one that gave way. False: that is done
 * already, or a daemon has proved good since.
 */
bool take_reload_back(char **named, const char *why);
/*
 * For the daemon that is started next: returns to the reload that was taken back, because no earlier daemon can serve.
 * False: none was taken back.
 */
bool stay_with_reload(char **named, const char *why);
/* Must be called when a daemon begins to serve. */
void close_reload(int64_t now_ms);
/* Must be called when the serving daemon has died. If it served for long, the reload has proved good. */
void judge_reload(int64_t now_ms);
/* Takes over the former supervisor's state of a trial. `served_ms` as in the options. */
void adopt_reload(int served_ms, int64_t now_ms);

/* unmount.c */
enum unmount_how {
  UNMOUNT_IF_FREE, /* EBUSY while programs use it */
  UNMOUNT_LAZILY,  /* detached at once; ends when the last file is closed */
  UNMOUNT_BY_FORCE /* detached with its copies, and all requests in flight fail: for a mount whose daemon is dead */
};
/* Starts a child that unmounts. Its exit status is 0 or an errno (0 also when our mount is gone). -1: errno is set. */
pid_t start_unmount(const struct mount *mount, enum unmount_how how);
/* Starts a child that detaches every mount of the connection, such as bind mounts. -1: errno is set. */
pid_t start_detaching_copies(const struct mount *mount);

#endif
