/* The real-time clock of a process, shifted by CLOCK_OFFSET seconds: preloaded with LD_PRELOAD (see clock.rs).
 *
 * The kernel is asked directly, so that nothing has to be looked up: an allocator reads clocks before main runs. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *now)
{
	long status = syscall(SYS_clock_gettime, clock, now);
	const char *offset = getenv("CLOCK_OFFSET");

	/* Only the time of day: a monotonic clock is never wrong. */
	if (status == 0 && offset && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
		now->tv_sec += atol(offset);
	return (int)status;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
	struct timespec precise;
	int status = clock_gettime(CLOCK_REALTIME, &precise);

	(void)zone;
	if (status == 0) {
		now->tv_sec = precise.tv_sec;
		now->tv_usec = precise.tv_nsec / 1000;
	}
	return status;
}

time_t time(time_t *kept)
{
	struct timespec now;

	if (clock_gettime(CLOCK_REALTIME, &now) != 0)
		return (time_t)-1;
	if (kept)
		*kept = now.tv_sec;
	return now.tv_sec;
}
