/* Shared by the workloads' measuring programs: options, clocks, and memory on huge pages. */
#ifndef STRATA_H
#define STRATA_H

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define HUGE_PAGE_BYTES ((size_t)2 << 20)

/* Returns the seconds of the monotonic clock. */
static inline double read_monotonic_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Returns the seconds since the epoch, by the clock that all systems of a host share.  Strata's
 * slices, with which parsers compare the end of a run, are of this clock. */
static inline double read_epoch_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Returns seconds as whole microseconds. */
static inline long long to_microseconds(double seconds)
{
    return (long long)(seconds * 1e6 + 0.5);
}

/* Returns "true" or "false", as JSON has them. */
static inline const char *format_bool(int value)
{
    return value ? "true" : "false";
}

/* Ends the program with a message about NAME, an option or a call, and the status 2. */
static inline void exit_with_error(const char *name, const char *reason)
{
    fprintf(stderr, "%s: %s\n", name, reason);
    exit(2);
}

/* Returns the text that follows option NAME; ends the program if it is missing.  The arguments are
 * pairs of an option and a text: an option at an even place is not found. */
static inline const char *get_option(int argc, char **argv, const char *name)
{
    for (int i = 1; i + 1 < argc; i += 2)
        if (strcmp(argv[i], name) == 0)
            return argv[i + 1];
    exit_with_error(name, "this option is missing");
    return NULL;
}

/* Returns the number, within [low, high], that a text represents; ends the program if it is none.
 * NAME is the name of the option, for the message. */
static inline double parse_number(const char *name, const char *text, double low, double high)
{
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    if (errno || end == text || *end || !(value >= low && value <= high))
        exit_with_error(name, "not a number in the range allowed");
    return value;
}

/* Returns the whole number that follows option NAME; ends the program unless it is in the range. */
static inline long get_integer(int argc, char **argv, const char *name, long low, long high)
{
    return (long)parse_number(name, get_option(argc, argv, name), (double)low, (double)high);
}

/* Returns the number that follows option NAME; ends the program unless it is in the range. */
static inline double get_number(int argc, char **argv, const char *name, double low, double high)
{
    return parse_number(name, get_option(argc, argv, name), low, high);
}

/* Returns BYTES of memory, aligned to huge pages, and on them if the kernel allows it.  Ends the
 * program if there is no memory. */
static inline void *allocate_huge(size_t bytes)
{
    void *memory = NULL;
    size_t rounded = (bytes + HUGE_PAGE_BYTES - 1) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
    if (posix_memalign(&memory, HUGE_PAGE_BYTES, rounded) != 0) {
        fprintf(stderr, "no memory for %zu bytes\n", rounded);
        exit(1);
    }
    /* A refusal is no error: count_huge_page_bytes() tells how much memory lies on huge pages. */
    (void)madvise(memory, rounded, MADV_HUGEPAGE);
    return memory;
}

/* Returns this process's bytes on transparent huge pages, or -1 if the kernel does not tell. */
static inline long long count_huge_page_bytes(void)
{
    char line[256];
    long long kilobytes = -1;
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    if (!file)
        return -1;
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "AnonHugePages: %lld kB", &kilobytes) == 1)
            break;
    fclose(file);
    return kilobytes < 0 ? -1 : kilobytes * 1024;
}

#endif
