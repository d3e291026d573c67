// A wall clock that a test can set, for a server or another process that is started with LD_PRELOAD: it is ahead of the machine's by
// the number of microseconds at the start of the file LOCKTENDER_CLOCK, at least 0. Monotonic clocks go on as they are.
//
//     cc -shared -fPIC -o clock.so tests/clock.c

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *ahead_us;

__attribute__((constructor)) static void open_clock(void) {
    const char *path = getenv("LOCKTENDER_CLOCK");
    int file = path ? open(path, O_RDONLY) : -1;
    if (file < 0) return;
    void *shared = mmap(NULL, sizeof *ahead_us, PROT_READ, MAP_SHARED, file, 0);
    if (shared != MAP_FAILED) ahead_us = shared;
    close(file);
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    int failed = (int)syscall(SYS_clock_gettime, clock, time);
    if (failed || !ahead_us || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)) return failed;
    int64_t nanos = time->tv_nsec + *ahead_us % 1000000 * 1000;
    time->tv_sec += *ahead_us / 1000000 + nanos / 1000000000;
    time->tv_nsec = nanos % 1000000000;
    return 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    (void)zone;
    struct timespec time;
    if (clock_gettime(CLOCK_REALTIME, &time)) return -1;
    now->tv_sec = time.tv_sec;
    now->tv_usec = time.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *out) {
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now)) return -1;
    if (out) *out = now.tv_sec;
    return now.tv_sec;
}
