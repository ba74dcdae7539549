/*
 * The supervisor's life: it starts the daemon, mounts when the daemon is prepared, passes the device to it and watches
 * it. It starts a successor on the same device when the daemon dies (successor.c limits how often) or gives way
 * (reload.c). In the end it detaches the mount.
 *
 * Lines from the daemon: prepared (with the device, if the daemon has mounted itself), ready, failed CODE TEXT,
 * outdated CODE TEXT (no daemon of this release can serve, because a later release has used the state dir), note TEXT,
 * heartbeat, unmount, reload TAG SETTINGS [PROGRAM] (the daemon's last line: it ends now, and the next daemon gets
 * these settings and this program).
 *
 * Lines to the daemon: mounted N (with the device), stop, unmounted [elsewhere: a copy is left in another mount
 * namespace], busy TEXT.
 *
 * Lines to the process that started us: note TEXT, and at last ready PID or failed CODE TEXT.
 */
#include "supervisor.h"

#include "step.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define TICK_MS 1000
#define SHORT_TICK_MS 10 /* while a successor waits for its turn */
#define REAP_TICK_MS 100
#define REAP_PATIENCE_MS 300 /* a dead process that is not reaped by then stays so for long */
#define RELOAD_WAIT_MS 2000 /* between daemons, when none can serve and the mount is kept */
#define KILL_PATIENCE_MS 5000 /* a killed process can only be stuck in the kernel, waiting for its own mount */

enum phase {
  PREPARING, /* the daemon checks what it needs; nothing is mounted */
  MOUNTED,   /* the daemon has the device and has not said that it works */
  RESUMING,  /* a successor must take over the mount, or waits for its turn to be started */
  SERVING,
  ENDING /* the daemon was told to stop, or has said why it cannot go on */
};

static struct {
  struct options options;
  enum phase phase;
  pid_t daemon;      /* 0: it has ended */
  int process;       /* of a daemon that is not our child; -1: it is our child */
  int control;       /* -1: closed */
  struct mount mount;
  pid_t unmounts[3]; /* children at work, by enum unmount_how; -1: no process could be started, it is tried again */
  pid_t detaching;   /* a child that detaches copies of the mount; 0: none */
  bool unmount_asked; /* the daemon waits for the answer */
  bool failed; /* the reason has been printed */
  bool signaled, killed, aborted;
  bool watched; /* the daemon's silence counts */
  int64_t silent_ms;
  int64_t dead_since; /* since when the daemon is dead and not reaped, as now_ms(); 0: it is not */
  int64_t start_at; /* when a successor is started, as now_ms(); 0: none waits */
  struct crashes crashes;
  char cause[LINE_LENGTH]; /* why a successor cannot go on, in its words */
  bool outdated; /* a later release has left state that this one cannot read */
  int exit_code;
} self = {.control = -1, .process = -1, .mount = {.device = -1}};

static void __attribute__((format(printf, 2, 3))) fail(int code, const char *format, ...)
{
  va_list values;
  va_start(values, format);
  write_failure(&self.options.status_fd, code, format, values);
  va_end(values);
  if (!self.failed) self.exit_code = code;
  self.failed = true;
}

static void tell(const char *line, int descriptor)
{
  if (self.control >= 0) send_line(self.control, line, descriptor);
}

static void close_device(void)
{
  if (self.mount.device < 0) return;
  close(self.mount.device);
  self.mount.device = -1;
}

static bool still_mounted(void)
{
  struct table_entry entry;
  return self.mount.device >= 0 && find_our_mount(&self.mount, &entry);
}

static void unmount(enum unmount_how how)
{
  pid_t before = self.unmounts[how];
  if (before <= 0) self.unmounts[how] = start_unmount(&self.mount, how);
  if (before == 0 && self.unmounts[how] < 0) say("cannot detach %s yet: %s", self.options.mountpoint, strerror(errno));
}

static bool unmounting(void)
{
  return self.unmounts[0] != 0 || self.unmounts[1] != 0 || self.unmounts[2] != 0;
}

/*
 * Detaches the remaining mounts of the connection when our mount is gone: bind mounts, which no daemon will serve.
 * Mounts in other mount namespaces are out of reach; programs there get ENOTCONN.
 */
static void detach_copies(void)
{
  struct table_entry copy;
  if (self.mount.device < 0 || self.detaching != 0) return;
  if (!find_mount_of(self.mount.connection, &copy) || !is_connected(self.mount.device)) return;
  pid_t pid = start_detaching_copies(&self.mount);
  if (pid > 0) self.detaching = pid;
}

/* The daemon serves until the mount is gone, and then finishes its work. */
static void end(enum unmount_how how)
{
  self.phase = ENDING;
  self.watched = true;
  if (unmounting()) return; /* its result decides how to go on */
  if (still_mounted()) {
    unmount(how);
  } else {
    tell("stop", -1);
    detach_copies();
  }
}

static void on_unmount_end(enum unmount_how how, int status)
{
  int error = WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
  self.unmounts[how] = error == EAGAIN || error == ENOMEM ? -1 : 0; /* no process could be started for fusermount3 */
  if (self.unmounts[how] < 0) return;
  if (error == 0) {
    step("supervisor: unmounted");
    /*
     * A copy in another mount namespace keeps the connection alive, so the daemon must not wait for the connection's
     * end.
     */
    bool elsewhere = self.mount.device >= 0 && is_connected(self.mount.device);
    if (self.unmount_asked) tell(elsewhere ? "unmounted elsewhere" : "unmounted", -1);
    self.unmount_asked = false;
    self.phase = ENDING;
    self.watched = true;
    tell("stop", -1);
    step("supervisor: told to stop");
    detach_copies();
    if (self.start_at != 0) { /* no successor is needed any more */
      self.start_at = 0;
      close_device();
    }
    return;
  }
  if (self.unmount_asked) {
    char line[LINE_LENGTH];
    snprintf(line, sizeof line, "busy %s", strerror(error));
    tell(line, -1);
    self.unmount_asked = false;
  }
  if (self.phase != ENDING) return;
  if (how != UNMOUNT_IF_FREE) {
    if (unmounting()) return;
    fail(1, "cannot detach %s: %s", self.options.mountpoint, strerror(error));
    tell("stop", -1);
    return;
  }
  if (self.daemon != 0) {
    if (error == EBUSY) say("programs still use %s: it is detached, and ends for them now", self.options.mountpoint);
    else say("cannot unmount %s (%s): it is detached", self.options.mountpoint, strerror(error));
  }
  unmount(self.daemon == 0 ? UNMOUNT_BY_FORCE : UNMOUNT_LAZILY);
}

static void pass_device(void)
{
  char line[32];
  snprintf(line, sizeof line, "mounted %u", self.mount.connection);
  tell(line, self.mount.device);
  step("supervisor: device passed");
}

static void on_prepared(void)
{
  char reason[LINE_LENGTH];
  step("supervisor: about to mount");
  if (!mount_device(&self.options, &self.mount, reason, sizeof reason)) {
    fail(1, "%s", reason);
    end(UNMOUNT_IF_FREE);
    return;
  }
  step("supervisor: mounted");
  self.phase = MOUNTED;
  self.watched = true;
  pass_device();
}

static void on_ready(void)
{
  char line[32];
  self.phase = SERVING;
  close_reload(now_ms());
  snprintf(line, sizeof line, "ready %d", (int)self.daemon);
  step("supervisor: ready");
  write_status(&self.options.status_fd, line);
  step("supervisor: ready told");
}

/* failed CODE TEXT */
static void on_failed(const char *values)
{
  int code = 0, start = 0;
  if (sscanf(values, "%d %n", &code, &start) < 1 || code < 1 || code > 125) code = 1;
  if (self.phase == RESUMING) { /* the next daemon may be able to serve; the end of this one follows and is counted */
    snprintf(self.cause, sizeof self.cause, "%s", values + start);
  } else {
    if (!self.failed) fail(code, "%s", values + start); /* otherwise it is a consequence of a reported failure */
    end(UNMOUNT_LAZILY);
  }
}

static void on_line(const char *line)
{
  self.silent_ms = 0;
  self.watched = true;
  if (strcmp(line, "heartbeat") == 0) return;
  if (strcmp(line, "prepared") == 0) {
    if (self.phase == PREPARING) on_prepared();
  } else if (strcmp(line, "ready") == 0) {
    if (self.phase == MOUNTED || self.phase == RESUMING) on_ready();
  } else if (strncmp(line, "note ", 5) == 0) {
    write_note(self.options.status_fd, line + 5);
  } else if (strncmp(line, "failed ", 7) == 0) {
    on_failed(line + 7);
  } else if (strncmp(line, "outdated ", 9) == 0) {
    self.outdated = true;
    on_failed(line + 9);
  } else if (strncmp(line, "reload ", 7) == 0) {
    keep_reload(line + 7);
  } else if (strcmp(line, "unmount") == 0) {
    self.unmount_asked = true;
    step("supervisor: unmount asked");
    if (!still_mounted() && !unmounting()) on_unmount_end(UNMOUNT_IF_FREE, 0);
    else if (!unmounting()) unmount(UNMOUNT_IF_FREE);
  } else {
    say("the daemon sent a line that the supervisor does not know: %.80s", line);
  }
}

static void read_control(void)
{
  static char line[RELOAD_LENGTH + 64];
  while (self.control >= 0) {
    int length = receive_line(self.control, line, sizeof line, &self.options.device_fd);
    if (length == -EAGAIN) return;
    if (length > 0) {
      on_line(line);
    } else {
      /* The end of the daemon follows, or its silence. */
      close(self.control);
      self.control = -1;
    }
  }
}

static void await_successor(int wait_ms, bool of_itself)
{
  self.phase = RESUMING;
  tell_fault(of_itself);
  self.start_at = now_ms() + wait_ms;
  self.killed = self.watched = self.outdated = false;
  self.silent_ms = 0;
  *self.cause = '\0';
}

/* Begins with another release. Deaths of earlier daemons say nothing about it. */
static bool begin_anew(void)
{
  forget_crashes(&self.crashes);
  await_successor(0, false);
  return true;
}

/*
 * The kernel keeps the requests of programs for as long as we hold the device. Only a mount that was usable is taken
 * over: before that no program uses it, and the command that made it gets the reason. A mount whose daemon gave way
 * waits until a daemon can serve it again.
 */
static bool plan_successor(const char *how, bool of_itself)
{
  char why[LINE_LENGTH + 128];
  describe_death(self.killed, how, self.cause, why, sizeof why);
  if (self.failed || self.aborted || self.mount.device < 0) return false;
  if (self.phase != SERVING && self.phase != RESUMING) return false;
  char **named = self.options.program;
  if (self.phase == SERVING) judge_reload(now_ms());
  else if (self.outdated && stay_with_reload(named, self.cause)) return begin_anew();
  else if (reload_is_open() && take_reload_back(named, *self.cause == '\0' ? why : self.cause)) return begin_anew();
  int wait = count_crash(&self.crashes, self.options.crashes, self.phase == SERVING, now_ms());
  if (wait < 0 && take_reload_back(named, why)) return begin_anew();
  if (wait < 0 && !reload_is_on_trial()) return false;
  say("%s; another one takes the mount over", why);
  tell_successor(self.crashes.before + self.crashes.total, why);
  await_successor(wait < 0 ? RELOAD_WAIT_MS : wait, of_itself || is_near_limit(&self.crashes, self.options.crashes));
  return true;
}

/* The caller closes the device. Requests of programs then fail, and an unmount that waits for them can go on. */
static void on_daemon_lost(const char *how)
{
  char why[LINE_LENGTH + 256];
  if (self.mount.device >= 0) {
    describe_loss(&self.crashes, self.options.crashes, self.killed, how, self.cause, why, sizeof why);
    fail(1, "%s; the mount is detached, unsent changes are kept and go on with the next mount", why);
  } else {
    const char *end = self.killed ? "the daemon gave no sign of life and was killed" : "the daemon ended";
    fail(1, "%s before the mount was made (%s)", end, how);
  }
}

/* For a daemon that is not our child it is unknown how it ended. */
static void on_daemon_end(int status)
{
  read_control(); /* its last lines */
  step("supervisor: daemon ended");
  bool adopted = self.daemon == self.options.adopted;
  self.daemon = self.options.adopted = 0;
  self.dead_since = 0;
  if (self.control >= 0) close(self.control);
  self.control = -1;
  bool mounted = still_mounted();
  bool clean = adopted || (WIFEXITED(status) && WEXITSTATUS(status) == 0);
  char how[64] = "not a child of this supervisor";
  if (!adopted) describe_end(status, how, sizeof how);
  if (self.process >= 0) close(self.process);
  self.process = -1;
  if (mounted && clean && self.phase == SERVING && begin_reload(self.options.program)) {
    await_successor(0, false);
    return;
  }
  /* After an unmount, by whichever program, the daemon ends by itself. */
  bool expected = self.failed || self.phase == ENDING || (self.mount.device >= 0 && self.phase >= RESUMING && !mounted);
  if (!expected || (self.killed && !self.failed)) {
    if (mounted && plan_successor(how, self.killed || !(adopted || was_killed(status)))) return;
    on_daemon_lost(how);
  } else if (!clean && !self.failed) {
    fail(1, "the daemon ended with %s; unsent changes are kept and go on with the next mount", how);
  }
  self.phase = ENDING;
  if (self.mount.device >= 0) {
    if (mounted) unmount(UNMOUNT_BY_FORCE);
    else detach_copies();
    close_device();
  }
}

static void reap(void)
{
  int status;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    if (pid == self.daemon) {
      on_daemon_end(status);
      continue;
    } /* an earlier daemon may be reaped late, see take_for_ended() */
    if (pid == self.detaching) self.detaching = 0;
    for (int how = 0; how < 3; how++) {
      if (pid == self.unmounts[how]) on_unmount_end(how, status);
    }
  }
}

/*
 * A thread of the daemon may wait in the kernel for the lock of a folder whose holder waits for the daemon. Then the
 * thread cannot be killed and the dead daemon cannot be reaped, and the lock is released only when a successor answers.
 * Everything else of the daemon is free: such a thread holds only the device, and the control socket is at its end.
 */
static void take_for_ended(void)
{
  int status;
  if (self.daemon == 0 || self.control >= 0 || !is_dead(self.daemon, &status)) return;
  if (self.dead_since == 0) self.dead_since = now_ms();
  else if (now_ms() - self.dead_since >= REAP_PATIENCE_MS) on_daemon_end(status);
}

/* No daemon serves the mount, and none will. */
static void give_up_waiting(void)
{
  self.start_at = 0;
  self.phase = ENDING;
  unmount(UNMOUNT_BY_FORCE);
  close_device();
}

static void start_successor(void)
{
  int error = start_daemon(program_in_use(self.options.program), &self.daemon, &self.control);
  self.watched = error == 0;
  if (error == 0) pass_device(); /* before the successor asks for it: it can go on even if we die now */
  int wait = judge_start(&self.crashes, error, self.options.silence, now_ms());
  self.start_at = wait > 0 ? now_ms() + wait : 0;
  if (wait >= 0) return;
  snprintf(self.cause, sizeof self.cause, "cannot start the daemon: %s", strerror(error));
  on_daemon_lost("no process");
  give_up_waiting();
}

/*
 * Time is counted in our own ticks: after a pause of the whole machine, or of this process, the daemon gets its seconds
 * again.
 */
static void watch(int64_t passed_ms)
{
  if (self.start_at != 0 && now_ms() >= self.start_at) start_successor();
  for (int how = 0; how < 3; how++) if (self.unmounts[how] < 0) unmount(how);
  self.silent_ms += passed_ms < 2 * TICK_MS ? passed_ms : 2 * TICK_MS;
  if (self.daemon == 0 || !self.watched) return;
  if (!self.killed && self.silent_ms >= (int64_t)self.options.silence * 1000) {
    self.killed = true;
    self.silent_ms = 0;
    self.process < 0 ? (void)kill(self.daemon, SIGKILL) : kill_process(self.process);
  } else if (self.killed && !self.aborted && self.silent_ms >= KILL_PATIENCE_MS) {
    self.aborted = true;
    if (self.mount.device >= 0) unmount(UNMOUNT_BY_FORCE);
  }
}

static void on_stop_signal(void)
{
  if (self.signaled || self.phase == ENDING) return; /* the end is under way already */
  self.signaled = true;
  if (self.phase == PREPARING || self.phase == MOUNTED) fail(1, "stopped before the mount was usable");
  if (self.start_at != 0) give_up_waiting();
  else end(UNMOUNT_IF_FREE);
}

/*
 * The command that started us is gone. The mount ends, because its user never heard of it and would never unmount it.
 */
static void on_starter_gone(void)
{
  close(self.options.status_fd);
  self.options.status_fd = -1;
  fail(1, "the command that started the mount is gone");
  if (self.phase != ENDING) end(UNMOUNT_IF_FREE);
}

static int tick_ms(void)
{
  return self.start_at != 0 ? SHORT_TICK_MS : self.daemon != 0 && self.control < 0 ? REAP_TICK_MS : TICK_MS;
}

/* When this fails, the daemon sees our end of the socket close, and handles that. */
static bool adopt(void)
{
  if (!find_mount_of_device(self.options.device_fd, &self.mount)) return false;
  self.process = open_parent(self.options.adopted);
  if (self.process < 0 && errno != ESRCH) return false;
  self.daemon = self.options.adopted;
  self.control = self.options.control_fd;
  self.phase = self.options.served_ms < 0 ? RESUMING : SERVING;
  adopt_reload(self.options.served_ms, now_ms());
  self.watched = true;
  self.crashes.before = crashes_told();
  say("took the place of a supervisor that died, for %s", self.options.mountpoint);
  if (self.process < 0) on_daemon_end(0); /* it died in between */
  return true;
}

static bool start_first(void)
{
  int error = start_daemon(self.options.program, &self.daemon, &self.control);
  if (error != 0) fail(1, "cannot start the daemon: %s", strerror(error));
  else step("supervisor: daemon started");
  return error == 0;
}

int main(int argc, char **argv)
{
  self.options = read_options(argc, argv);
  if (self.options.adopted == 0) reset_descriptors(self.options.status_fd);
  prctl(PR_SET_NAME, NAME);
  int signals = take_signals();
  if (signals < 0) fail(1, "cannot receive signals: %s", strerror(errno));
  if (signals < 0) return self.exit_code;
  if (self.options.adopted != 0 ? !adopt() : !start_first()) return 1;
  for (int64_t before = now_ms(); self.daemon != 0 || self.start_at != 0 || unmounting() || self.detaching != 0;) {
    struct pollfd sources[] = {{.fd = signals, .events = POLLIN}, {.fd = self.control, .events = POLLIN},
                               {.fd = self.options.status_fd}, {.fd = self.process, .events = POLLIN}};
    if (poll(sources, 4, tick_ms()) < 0 && errno != EINTR) {
      say("cannot wait for events: %s", strerror(errno)); /* out of memory: try again, slowly */
      sleep(1);
    }
    bool starter_gone = (sources[2].revents & (POLLHUP | POLLERR)) != 0;
    int64_t now = now_ms();
    if (asks_to_end(signals)) on_stop_signal();
    read_control();
    if (starter_gone && self.options.status_fd >= 0) on_starter_gone();
    if ((sources[3].revents & POLLIN) != 0) on_daemon_end(0);
    reap();
    take_for_ended();
    watch(now - before);
    before = now;
  }
  step("supervisor: ending");
  return self.exit_code;
}
