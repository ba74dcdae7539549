/*
 * A message on a Unix socket, with at most one descriptor (SCM_RIGHTS): between supervisor and daemon, and from
 * fusermount3. This file does not know what the messages say.
 */
#ifndef WSFS_SOCKET_MESSAGE_H
#define WSFS_SOCKET_MESSAGE_H

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

union one_descriptor {
  struct cmsghdr header;
  char space[CMSG_SPACE(sizeof(int))];
};

/* Never waits. `descriptor` -1: none. 0 or an errno: EAGAIN when the other end does not read, EPIPE when it is gone. */
static inline int send_message(int fd, const char *text, int descriptor)
{
  union one_descriptor extra = {0};
  struct iovec part = {.iov_base = (char *)(uintptr_t)text, .iov_len = strlen(text)};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  if (descriptor >= 0) {
    message.msg_control = &extra;
    message.msg_controllen = sizeof extra;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof descriptor);
    memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  }
  ssize_t sent;
  do {
    sent = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    /* ECONNRESET: reported once, by the first call, when the other end was closed with unread messages of ours. */
  } while (sent < 0 && (errno == EINTR || errno == ECONNRESET));
  return sent < 0 ? errno : 0;
}

/*
 * Length of the message, 0 at the end, or -errno. `descriptor` is -1 when none came. The kernel closes further
 * descriptors of the same message: the buffer has room for one, although CMSG_SPACE, which is padded, has room for two.
 */
static inline int receive_message(int fd, int flags, char *text, size_t size, int *descriptor)
{
  union one_descriptor extra;
  struct iovec part = {.iov_base = text, .iov_len = size};
  struct msghdr message = {
    .msg_iov = &part, .msg_iovlen = 1, .msg_control = &extra, .msg_controllen = CMSG_LEN(sizeof(int))};
  ssize_t length;
  do {
    length = recvmsg(fd, &message, flags | MSG_CMSG_CLOEXEC);
    /*
     * ECONNRESET: reported once, before the last messages, when the other end was closed with unread messages of ours.
     */
  } while (length < 0 && (errno == EINTR || errno == ECONNRESET));
  *descriptor = -1;
  if (length < 0) return -errno;
  const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  if (header != NULL && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
    memcpy(descriptor, CMSG_DATA(header), sizeof *descriptor);
  }
  return (int)length;
}

#endif
