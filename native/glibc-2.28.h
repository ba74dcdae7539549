/*
 * Included first in a build that must load with every glibc from 2.28 on, the oldest that Node supports. It names
 * versions of functions that all of them have. A build on a newer system would otherwise ask for that system's
 * versions.
 */
#ifndef WSFS_GLIBC_2_28_H
#define WSFS_GLIBC_2_28_H

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define FIRST "GLIBC_2.2.5"
#define NAMED "GLIBC_2.12"
#elif defined(__aarch64__)
#define FIRST "GLIBC_2.17"
#define NAMED "GLIBC_2.17"
#else
#error "expected x86-64 or AArch64"
#endif

__asm__(".symver dlsym, dlsym@" FIRST);
__asm__(".symver pthread_attr_setstacksize, pthread_attr_setstacksize@" FIRST);
__asm__(".symver pthread_create, pthread_create@" FIRST);
__asm__(".symver pthread_join, pthread_join@" FIRST);
__asm__(".symver pthread_once, pthread_once@" FIRST);
__asm__(".symver pthread_setname_np, pthread_setname_np@" NAMED);
__asm__(".symver pthread_sigmask, pthread_sigmask@" FIRST);

#undef FIRST
#undef NAMED

/* Before 2.33 fstat is no function of the library. The kernel fills in the same structure. */
static inline int fstat_by_kernel(int fd, struct stat *stat)
{
  return (int)syscall(SYS_fstat, fd, stat);
}
#define fstat fstat_by_kernel

#endif
