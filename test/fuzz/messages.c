/*
 * The device of the addon, for libFuzzer: what the kernel sends is answered right where it is read (fast-path.c,
 * refusals.c) or handed to JavaScript as it came, never both, never neither. The input says which handles may be read
 * and written, and what messages look like. What is answered is compared with a model of the one file there is.
 */
#include "../../native/addon/device.c"

#include <assert.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "../../native/addon/messages.h"
#include "node-api.h"

#define FILE_SIZE 8192
#define MESSAGE_MAX (300 * 1024) /* longer than GIVEN_LENGTH */
#define REPLY_MAX (sizeof(struct out_header) + MESSAGE_MAX)
#define HANDLES 4
#define READ 15
#define WRITE 16
#define GETXATTR 22

struct transfer {
  uint64_t fh, offset;
  uint32_t size, transfer_flags;
  uint64_t lock_owner;
  uint32_t flags, padding;
};

struct input {
  const uint8_t *next;
  size_t left;
};

/* The third one has the place of the first. */
static const uint64_t handles[HANDLES] = {1, 2, 1 + FAST_PATH_HANDLES, UINT64_MAX};

static struct {
  struct device device;
  int kernel, file;
  bool reads[HANDLES], writes[HANDLES];
  uint8_t bytes[FILE_SIZE]; /* of the file, as they ought to be */
  uint64_t sent;
} self;

static uint8_t byte_of(struct input *input)
{
  if (input->left == 0) return 0;
  input->left--;
  return *input->next++;
}

static uint64_t number_of(struct input *input, int bytes)
{
  uint64_t number = 0;
  for (int i = 0; i < bytes; i++) number |= (uint64_t)byte_of(input) << (8 * i);
  return number;
}

static void set_up(void)
{
  int ends[2], size = 4 * 1024 * 1024;
  assert(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
  for (int i = 0; i < 2; i++) {
    if (setsockopt(ends[i], SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size) < 0) {
      setsockopt(ends[i], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    }
  }
  self.kernel = ends[1];
  self.device.fd = ends[0];
  self.device.capacity = MESSAGE_MAX;
  self.device.spans_data = calloc(WAKE_MESSAGES, 2 * sizeof(uint32_t));
  /* It stays as long as it is. */
  self.file = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  assert(self.file >= 0 && ftruncate(self.file, FILE_SIZE) == 0);
  assert(fcntl(self.file, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK) == 0);
  assert( fast_path_open(&self.device.fast_path, ends[0], MESSAGE_MAX) && renew_slab(&self.device));
}

static void begin_anew(void)
{
  memset(self.device.fast_path.leases, 0, sizeof self.device.fast_path.leases);
  memset(self.reads, 0, sizeof self.reads);
  memset(self.writes, 0, sizeof self.writes);
  for (size_t i = 0; i < FILE_SIZE; i++) self.bytes[i] = (uint8_t)(i * 7);
  assert(pwrite(self.file, self.bytes, FILE_SIZE, 0) == FILE_SIZE);
}

static int index_of(uint64_t handle)
{
  for (int i = 0; i < HANDLES; i++) if (handles[i] == handle) return i;
  return -1;
}

/* What JavaScript says of the handles. */
static void say_to_fast_path(struct input *input, int what)
{
  struct fast_path *fast_path = &self.device.fast_path;
  int index = byte_of(input) % HANDLES;
  if (what == 0) fast_path_grant_read(fast_path, handles[index], self.file);
  if (what == 1) fast_path_grant_write(fast_path, handles[index], self.file, UINT64_C(1) << 60);
  if (what == 2) fast_path_revoke_reads(fast_path, self.file);
  if (what == 3) fast_path_revoke_writes(fast_path, self.file);
  if (what == 4) fast_path_end(fast_path, handles[index]);
  for (int i = 0; i < HANDLES; i++) {
    bool same = i == index, shares = handles[i] % FAST_PATH_HANDLES == handles[index] % FAST_PATH_HANDLES;
    bool is_lost = what <= 1 && !same && shares;
    if (is_lost || (what == 4 && same)) self.reads[i] = self.writes[i] = false;
    if (what == 2) self.reads[i] = false;
    if (what == 3) self.writes[i] = false;
  }
  if (what == 0) self.reads[index] = true;
  if (what == 1) self.writes[index] = true;
}

/* Bytes of the input as they are, and what of them is put right so that they are a request; the length. */
static size_t make_message(struct input *input, uint8_t *message)
{
  static const uint32_t opcodes[] = {READ, WRITE, GETXATTR, WRITE};
  unsigned right = (unsigned)number_of(input, 2);
  size_t length = number_of(input, 2) % 400, given = length < input->left ? length : input->left;
  if ((right & 1) != 0) length = length * 1000 % MESSAGE_MAX; /* large */
  if (given > length) given = length;
  for (size_t i = given; i < length; i++) message[i] = (uint8_t)i;
  memcpy(message, input->next, given);
  input->next += given;
  input->left -= given;
  struct in_header header = {0};
  struct transfer transfer = {0};
  size_t whole = sizeof header + sizeof transfer;
  memcpy(&header, message, length < sizeof header ? length : sizeof header);
  if (length > sizeof header) {
    memcpy(&transfer, message + sizeof header, length < whole ? length - sizeof header : sizeof transfer);
  }
  if ((right & 2) != 0) header.opcode = opcodes[right >> 14];
  if ((right & 4) != 0 && header.opcode == READ) length = whole;
  if ((right & 8) != 0) header.len = (uint32_t)length;
  if ((right & 16) != 0) header.unique = 2 * ++self.sent;
  if ((right & 32) != 0) header.total_extlen = 0;
  if ((right & 64) != 0) transfer.fh = handles[transfer.fh % HANDLES];
  if ((right & 128) != 0) transfer.offset %= FILE_SIZE;
  if ((right & 256) != 0) transfer.size = header.opcode == WRITE && length > whole ? (uint32_t)(length - whole) : transfer.size % FILE_SIZE;
  if ((right & 512) != 0) transfer.transfer_flags &= 7;
  memcpy(message, &header, length < sizeof header ? length : sizeof header);
  if (length > sizeof header && header.opcode != GETXATTR) {
    memcpy(message + sizeof header, &transfer, length < whole ? length - sizeof header : sizeof transfer);
  }
  if ((right & 1024) != 0 && header.opcode == GETXATTR && length > 0) message[length - 1] = '\0';
  return length == 0 ? 1 : length;
}

static void check_file(void)
{
  uint8_t bytes[FILE_SIZE];
  assert(pread(self.file, bytes, FILE_SIZE, 0) == FILE_SIZE);
  assert(memcmp(bytes, self.bytes, FILE_SIZE) == 0);
}

static void check_read(const struct transfer *asked, const uint8_t *body, size_t length)
{
  size_t rest = asked->offset < FILE_SIZE ? FILE_SIZE - asked->offset : 0;
  assert(length == (asked->size < rest ? asked->size : rest));
  assert(length == 0 || memcmp(body, self.bytes + asked->offset, length) == 0);
}

static void check_write(const struct transfer *asked, const uint8_t *data, const uint8_t *body, size_t length)
{
  uint32_t written;
  assert(length == 8);
  memcpy(&written, body, sizeof written);
  assert(written == asked->size && asked->offset + written <= FILE_SIZE);
  memcpy(self.bytes + asked->offset, data, written);
}

/* Only what is a request in every way, and has a lease, is answered, and as JavaScript would. */
static void check_answer(const uint8_t *message, size_t length, const uint8_t *reply, size_t reply_length)
{
  struct in_header header;
  struct out_header out;
  assert(length >= sizeof header && reply_length >= sizeof out);
  memcpy(&header, message, sizeof header);
  memcpy(&out, reply, sizeof out);
  assert(header.len == length && header.unique != 0 && header.unique >> 63 == 0 && header.total_extlen == 0);
  assert(out.len == reply_length && out.unique == header.unique);
  if (header.opcode == GETXATTR) {
    const char *name = (const char *)message + sizeof header + 8;
    assert(out.error == -EOPNOTSUPP && reply_length == sizeof out && length > sizeof header + 9);
    assert(strnlen(name, length - sizeof header - 8) == length - sizeof header - 9 && strncmp(name, "user.", 5) != 0);
    return;
  }
  struct transfer asked;
  assert(length >= sizeof header + sizeof asked && out.error == 0);
  memcpy(&asked, message + sizeof header, sizeof asked);
  int index = index_of(asked.fh);
  assert(index >= 0 && (header.opcode == READ ? self.reads[index] : self.writes[index]));
  assert(length == sizeof header + sizeof asked + (header.opcode == READ ? 0 : asked.size));
  const uint8_t *body = reply + sizeof out;
  if (header.opcode == READ) check_read(&asked, body, reply_length - sizeof out);
  else check_write(&asked, message + sizeof header + sizeof asked, body, reply_length - sizeof out);
}

static void check_handed_over(const struct wake *wake, const uint8_t *message, size_t length)
{
  /* A write that reaches past the end has failed half way: JavaScript does it again. */
  for (int i = 0; i < HANDLES; i++) {
    if (self.writes[i]) assert(pread(self.file, self.bytes, FILE_SIZE, 0) == FILE_SIZE);
  }
  uint32_t offset = self.device.spans_data[0];
  assert(self.device.spans_data[1] == length);
  if (offset == NOT_IN_SLAB) {
    size_t given;
    const uint8_t *bytes = fake_buffer(wake->large, 0, &given);
    assert(wake->large_count == 1 && given == length && memcmp(bytes, message, length) == 0);
  } else {
    assert(wake->large_count == 0 && offset + length <= SLAB_SIZE);
    assert(memcmp(self.device.slab_data + offset, message, length) == 0);
  }
}

static void send_to_device(struct input *input)
{
  static uint8_t message[MESSAGE_MAX], reply[REPLY_MAX];
  size_t length = make_message(input, message);
  if (send(self.kernel, message, length, 0) != (ssize_t)length) return; /* an ordinary user's socket takes less */
  struct wake wake = {0};
  read_messages(&self.device, &wake, 0);
  assert(wake.found && wake.end == 0 && wake.count <= 1);
  ssize_t answered = recv(self.kernel, reply, sizeof reply, 0);
  assert((answered > 0) == (wake.count == 0));
  if (answered > 0) check_answer(message, length, reply, (size_t)answered);
  else check_handed_over(&wake, message, length);
  check_file();
  fake_forget_values();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  struct input input = {data, size};
  if (self.device.landing == NULL && self.device.spans_data == NULL) set_up();
  begin_anew();
  while (input.left > 0) {
    int what = byte_of(&input) % 8;
    if (what < 5) say_to_fast_path(&input, what);
    else send_to_device(&input);
  }
  return 0;
}
