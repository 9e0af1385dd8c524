/* Functions of newer C libraries, for a module that loads on glibc 2.28 too. The linker binds a call to the newest
   version of a function, so what is built on a new system asks for versions that an old one lacks. Here such functions
   have hidden definitions, which the module and its static libraries use: a jump to the older version (the same code on
   a new system), or a few lines with the same effect. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

#define HIDDEN __attribute__((visibility("hidden")))

/* A jump keeps the arguments and the caller's address, whatever the function's type. */
#define OLDER(name, version)                                                                                           \
  __asm__(".symver cresset_old_" #name ", " #name "@" version "\n.pushsection .text\n.globl " #name "\n.hidden " #name \
          "\n.type " #name ", @function\n" #name ":\n\tjmp *cresset_old_" #name "@GOTPCREL(%rip)\n.size " #name        \
          ", .-" #name "\n.popsection\n");

#if __GLIBC_PREREQ(2, 29)
/* Versions that differ from the newer ones in how they report errors through matherr. */
OLDER(exp, "GLIBC_2.2.5")
OLDER(exp2, "GLIBC_2.2.5")
OLDER(log, "GLIBC_2.2.5")
OLDER(log2, "GLIBC_2.2.5")
OLDER(pow, "GLIBC_2.2.5")
#endif
#if __GLIBC_PREREQ(2, 35)
OLDER(hypot, "GLIBC_2.2.5")
OLDER(hypotf, "GLIBC_2.2.5")
#endif
#if __GLIBC_PREREQ(2, 34)
/* Functions that moved into libc.so from libraries of their own. */
OLDER(dladdr, "GLIBC_2.2.5")
OLDER(dlclose, "GLIBC_2.2.5")
OLDER(dlerror, "GLIBC_2.2.5")
OLDER(dlopen, "GLIBC_2.2.5")
OLDER(dlsym, "GLIBC_2.2.5")
OLDER(pthread_attr_setstacksize, "GLIBC_2.2.5")
OLDER(pthread_create, "GLIBC_2.2.5")
OLDER(pthread_detach, "GLIBC_2.2.5")
OLDER(pthread_getname_np, "GLIBC_2.12")
OLDER(pthread_join, "GLIBC_2.2.5")
OLDER(pthread_mutex_timedlock, "GLIBC_2.2.5")
OLDER(pthread_mutex_trylock, "GLIBC_2.2.5")
OLDER(pthread_once, "GLIBC_2.2.5")
OLDER(pthread_rwlock_rdlock, "GLIBC_2.2.5")
OLDER(pthread_rwlock_unlock, "GLIBC_2.2.5")
OLDER(pthread_rwlock_wrlock, "GLIBC_2.2.5")
OLDER(pthread_setname_np, "GLIBC_2.12")
#endif
#if __GLIBC_PREREQ(2, 32)
OLDER(pthread_sigmask, "GLIBC_2.2.5")
/* The C++ library counts references without atomic operations while this is true. */
HIDDEN char __libc_single_threaded = 0;
#endif
#if __GNUC__ >= 12
/* std::condition_variable::wait. */
OLDER(_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE, "GLIBCXX_3.4.11")
#endif

/* Files. The first argument is the layout of struct stat, 1 on x86-64. */
#if __GLIBC_PREREQ(2, 33)
extern int __xstat(int, const char*, struct stat*);
extern int __lxstat(int, const char*, struct stat*);
extern int __fxstat(int, int, struct stat*);
extern int __xmknod(int, const char*, mode_t, dev_t*);
HIDDEN int stat(const char* path, struct stat* out) { return __xstat(1, path, out); }
HIDDEN int lstat(const char* path, struct stat* out) { return __lxstat(1, path, out); }
HIDDEN int fstat(int file, struct stat* out) { return __fxstat(1, file, out); }
HIDDEN int stat64(const char* path, struct stat64* out) { return __xstat(1, path, (struct stat*)out); }
HIDDEN int lstat64(const char* path, struct stat64* out) { return __lxstat(1, path, (struct stat*)out); }
HIDDEN int fstat64(int file, struct stat64* out) { return __fxstat(1, file, (struct stat*)out); }
HIDDEN int mknod(const char* path, mode_t mode, dev_t device) { return __xmknod(0, path, mode, &device); }

/* LLVM's statistics of memory. */
HIDDEN struct mallinfo2 mallinfo2(void) {
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  const struct mallinfo old = mallinfo();
  const struct mallinfo2 out = {.arena = (unsigned)old.arena,
                                .ordblks = (unsigned)old.ordblks,
                                .hblks = (unsigned)old.hblks,
                                .hblkhd = (unsigned)old.hblkhd,
                                .uordblks = (unsigned)old.uordblks,
                                .fordblks = (unsigned)old.fordblks};
  return out;
}
#endif

#if __GLIBC_PREREQ(2, 30)
/* Waiting until a time of another clock: until the same distance from now on the clock that the old functions know. */
static struct timespec on_wall_clock(clockid_t clock, const struct timespec* until) {
  struct timespec now, wall;
  clock_gettime(clock, &now);
  clock_gettime(CLOCK_REALTIME, &wall);
  wall.tv_sec += until->tv_sec - now.tv_sec;
  wall.tv_nsec += until->tv_nsec - now.tv_nsec;
  if (wall.tv_nsec < 0) wall.tv_sec -= 1, wall.tv_nsec += 1000000000;
  if (wall.tv_nsec >= 1000000000) wall.tv_sec += 1, wall.tv_nsec -= 1000000000;
  return wall;
}
HIDDEN int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                                  const struct timespec* until) {
  const struct timespec wall = on_wall_clock(clock, until);
  return pthread_cond_timedwait(condition, mutex, &wall);
}
HIDDEN int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock, const struct timespec* until) {
  const struct timespec wall = on_wall_clock(clock, until);
  return pthread_mutex_timedlock(mutex, &wall);
}
#endif

#if __GLIBC_PREREQ(2, 36)
/* LLVM's random numbers: names of temporary files. */
HIDDEN uint32_t arc4random(void) {
  uint32_t number = 0;
  while (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number) {
  }
  return number;
}
#endif
