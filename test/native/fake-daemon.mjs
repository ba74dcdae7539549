/**
 * A daemon for the supervisor's tests: answers INIT and what a look at an empty root needs by
 * hand-made buffers. It must use nothing of src/, for the supervisor knows no daemon of ours.
 *
 *   node fake-daemon.mjs ADDON LOG BEHAVIOUR
 *
 * Every line from the supervisor is appended to LOG, and one of each thing it does. SIGUSR2 makes
 * it ask for the unmount, or say that it is prepared when it is "late" with that. One that takes over
 * asks for what was not answered, and behaves well, but for "-again" behaviours. "stuck-notify" leaves the
 * name "slow" unanswered, and tells the kernel of a name in the same folder, which is locked.
 * After "reload-dead" gave way none can serve until LOG.dead is removed.
 * The "adopt-" ones start a supervisor in the place of one that dies, and are silent or dead by then; the first
 * successor of "adopt-fails-again" does before it serves, and says then that it cannot. "adopt-reload" is as "reload" too;
 * its time is ahead by what WSFS_AHEAD_FILE says.
 * Once LOG.later is there, daemons with the first settings say that a later release has been here.
 */
import { spawn } from "node:child_process";
import { appendFileSync, closeSync, existsSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

const [addonPath, logPath, first] = process.argv.slice(2);
const restarts = process.env.WSFS_RESTARTS ?? "";
const behaviour = restarts === "" || first.endsWith("-again") ? first : "serve";
/** Starts another supervisor when its own dies. */
const adopts = first.startsWith("adopt-");
const failsAdopted = behaviour === "adopt-fails-again" && restarts.startsWith("1 ");
const addon = createRequire(import.meta.url)(addonPath);
const log = (text) => appendFileSync(logPath, `${text}\n`);
const BUFFER_SIZE = 1024 * 1024 + 4096;

/** Until we have ended: it reads our last words when we have not read its own. */
function stopParent() {
  process.kill(process.ppid, "SIGSTOP");
  const afterUs = `until grep -q ") Z" /proc/${process.pid}/stat; do sleep 0.02; done; kill -CONT ${process.ppid}`;
  spawn("sh", ["-c", afterUs], { detached: true, stdio: "ignore" });
}

function descriptors() {
  const open = [];
  for (const fd of readdirSync("/proc/self/fd")) {
    try {
      const target = readlinkSync(`/proc/self/fd/${fd}`);
      open.push(`${fd}=${target}`);
    } catch {}
  }
  return open;
}

// What Node itself opens (epoll, eventfd, pipes) is no concern: tests look for files by path.
log(`descriptors ${JSON.stringify(descriptors())}`);
log(`environment ${process.env.WSFS_CONTROL_FD}`);
const session = readFileSync("/proc/self/stat", "utf8").split(") ")[1].split(" ")[3];
log(`session ${session} pid ${process.pid}`);

if (restarts !== "") {
  log(`restarts ${restarts}`);
  log(`the one before ${process.env.WSFS_DIED_OF_ITSELF !== "0" ? "died of itself" : "did not die of itself"}`);
  const { WSFS_DAEMON_SETTINGS: settings, WSFS_RELOAD: reload } = process.env;
  if (settings !== undefined) log(`settings ${settings.slice(0, 20)} ${settings.length} reload ${reload}`);
  if (settings?.startsWith("first") === true && existsSync(`${logPath}.later`)) {
    const early = addon.openControl(
      Number(process.env.WSFS_CONTROL_FD),
      () => {},
      () => {},
    );
    stopParent();
    addon.controlSend(early, "outdated 1 the store is of a later release", -1);
    process.exit(1);
  }
  if (settings?.startsWith("bad") === true || existsSync(`${logPath}.dead`)) process.exit(70);
  if (behaviour === "die-again") process.exit(70);
  if (behaviour === "wait-again") log("waiting again");
}

let readyAt;
const send = (line) => {
  if (line === "ready") readyAt = now();
  return addon.controlSend(control, line, -1);
};
let device, deviceFd;

function now() {
  const { WSFS_AHEAD_FILE: ahead } = process.env;
  return Math.floor(performance.now()) + (ahead === undefined ? 0 : Number(readFileSync(ahead, "utf8")));
}

function attributes(buffer, offset) {
  buffer.writeBigUInt64LE(1n, offset); // ino
  buffer.writeUInt32LE(0o040755, offset + 60);
  buffer.writeUInt32LE(2, offset + 64); // links
  buffer.writeUInt32LE(process.getuid(), offset + 68);
  buffer.writeUInt32LE(process.getgid(), offset + 72);
}

/** The reply's body, an errno, or undefined: no answer. */
function answer(opcode) {
  switch (opcode) {
    case 26: {
      const body = Buffer.alloc(64);
      body.writeUInt32LE(7, 0);
      body.writeUInt32LE(31, 4);
      body.writeUInt32LE(131072, 8);
      body.writeUInt32LE(131072, 20);
      body.writeUInt32LE(1, 24);
      return body;
    }
    case 3: {
      if (behaviour === "hang-getattr") return undefined;
      const body = Buffer.alloc(104);
      attributes(body, 16);
      return body;
    }
    case 17:
      return Buffer.alloc(80);
    case 27: // opendir
      return Buffer.alloc(16);
    case 28: // readdir: nothing in it
      return Buffer.alloc(0);
    case 29:
      return Buffer.alloc(0);
    case 1:
      return 2;
    case 2:
    case 42:
      return undefined;
    default:
      return 38;
  }
}

/** FUSE_NOTIFY_INVAL_ENTRY */
function invalidate(parent, name) {
  const message = Buffer.alloc(32 + name.length + 1);
  message.writeUInt32LE(message.length, 0);
  message.writeInt32LE(3, 4);
  message.writeBigUInt64LE(BigInt(parent), 16);
  message.writeUInt32LE(name.length, 24);
  message.write(name, 32);
  return addon.deviceNotify(device, 0, message);
}

function serve(messages) {
  for (const message of messages) {
    const opcode = message.readUInt32LE(4);
    if (behaviour === "hang-getattr") log(`request ${opcode}`);
    if (behaviour === "stuck-notify" && opcode === 1 && message.toString("latin1", 40, message.length - 1) === "slow") {
      invalidate(1, "other");
      continue;
    }
    const result = answer(opcode);
    if (result === undefined) continue;
    const head = Buffer.alloc(16);
    message.copy(head, 8, 8, 16);
    const body = typeof result === "number" ? Buffer.alloc(0) : result;
    head.writeUInt32LE(16 + body.length, 0);
    head.writeInt32LE(typeof result === "number" ? -result : 0, 4);
    addon.deviceReply(device, [head, body]);
    if (opcode === 26) onInit();
  }
}

function onInit() {
  if (behaviour === "fail-after-mount") {
    send("failed 5 the store is broken");
    return;
  }
  send("ready");
}

function finish(why) {
  log(`ending ${why}`);
  process.exit(behaviour === "ends-with-9" ? 9 : 0);
}

let control = addon.openControl(
  Number(process.env.WSFS_CONTROL_FD),
  (line, descriptor) => {
    log(`line ${line}`);
    if (line.startsWith("mounted ") && !(behaviour === "wait-again" && restarts !== "")) {
      if (behaviour === "die-on-mounted") process.exit(3);
      deviceFd = descriptor;
      log(`connection ${addon.connectionNumber(descriptor)}`);
      device = addon.openDevice(
        descriptor,
        BUFFER_SIZE,
        (slab, spans, count, large) => {
          const messages = [];
          for (let i = 0; i < count; i++) {
            const offset = spans[2 * i];
            messages.push(offset === 0xffffffff ? large.shift() : Buffer.from(slab, offset, spans[2 * i + 1]));
          }
          serve(messages);
        },
        (name) => {
          log(`device ${name}`);
          if (behaviour === "slow-end") setTimeout(() => finish("slowly"), 1500);
          else if (behaviour !== "deaf" && behaviour !== "stays") finish(name);
        },
      );
      if (restarts !== "") {
        const resend = Buffer.alloc(16);
        resend.writeUInt32LE(16, 0);
        resend.writeInt32LE(7, 4);
        log(`resend ${addon.deviceReply(device, [resend])}`);
        if (failsAdopted) return;
        send("ready");
      }
      addon.deviceResume(device);
    }
    if (line === "stop" && behaviour === "complain") send("failed 3 cannot go on");
    if (line === "stop" && behaviour !== "deaf" && behaviour !== "slow-end") finish("stop");
  },
  () => {
    if (adopts) startSupervisor();
    else finish("control closed");
  },
);

/** It gives way to one with settings of this length. */
function giveWay(settings) {
  log(`gives way ${send(`reload tag:1 ${settings}`)}`);
  process.exit(0);
}

if (first === "reload" || first === "adopt-reload") process.on("SIGUSR1", () => giveWay("good".padEnd(100_000, "x")));
if (first === "reload-bad") process.on("SIGUSR1", () => giveWay("bad"));
if (first === "reload-dead") {
  process.on("SIGUSR1", () => {
    writeFileSync(`${logPath}.dead`, "");
    giveWay("other");
  });
}
function startSupervisor() {
  if (first !== "adopt-reload") clearInterval(beating);
  const [own, theirs] = addon.socketPair(0);
  const program = process.env.WSFS_SUPERVISOR ?? join(dirname(addonPath), "wsfs-supervisor");
  const adopting = ["--adopt", `${process.pid}`, "--control-fd", "3", "--device-fd", "4", "--mountpoint", "/nowhere"];
  if (!failsAdopted) adopting.push("--served", `${now() - readyAt}`);
  const rest = [
    "--crashes",
    "5",
    "--silence",
    first === "adopt-reload" ? "30" : "2",
    "--",
    process.execPath,
    ...process.argv.slice(1),
  ];
  const afterUs = `while [ "$(cut -d " " -f 4 /proc/$$/stat)" = ${process.pid} ]; do sleep 0.02; done; exec "$0" "$@"`;
  const isLate = behaviour === "adopt-late";
  const [command, ...words] = [...(isLate ? ["sh", "-c", afterUs] : []), program, ...adopting, ...rest];
  const child = spawn(command, words, { detached: true, stdio: ["ignore", "ignore", "inherit", theirs, deviceFd] });
  log(`supervisor ${child.pid}`);
  closeSync(theirs);
  if (isLate) process.kill(process.pid, "SIGKILL");
  control = addon.openControl(
    own,
    (line) => log(`line ${line}`),
    () => finish("control closed"),
  );
  if (!failsAdopted) return;
  send("failed 5 no room for its record");
  process.exit(5);
}

process.on("SIGUSR2", () => send(behaviour === "late" ? "prepared" : "unmount"));
const beats = behaviour !== "silent" && behaviour !== "deaf";
const beating = beats ? setInterval(() => send("heartbeat"), 200) : undefined;
switch (behaviour) {
  case "refuse":
    send("failed 2 some text about what is wrong");
    break;
  case "die":
    process.exit(4);
    break;
  case "wait-again":
    if (restarts === "") send("prepared");
    break;
  case "wait":
  case "complain":
  case "late":
    log("waiting");
    break;
  case "note":
    send("note the first");
    send("note the second");
    send("prepared");
    break;
  default:
    send("prepared");
}
