/* What the measuring programs of the workloads share: options, a clock, memory on huge pages. */
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

/* Seconds of the monotonic clock. */
static inline double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Seconds since the epoch, by the clock that all systems of a host share. */
static inline double moment(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline long long microseconds(double moment)
{
    return (long long)(moment * 1e6 + 0.5);
}

static inline const char *json_bool(int value)
{
    return value ? "true" : "false";
}

static inline void usage_error(const char *name, const char *reason)
{
    fprintf(stderr, "%s: %s\n", name, reason);
    exit(2);
}

/* The text that follows option NAME; ends the program where it is missing. */
static inline const char *option_text(int argc, char **argv, const char *name)
{
    for (int i = 1; i + 1 < argc; i += 2)
        if (strcmp(argv[i], name) == 0)
            return argv[i + 1];
    usage_error(name, "this option is missing");
    return NULL;
}

/* A number within [low, high]; ends the program where it is none. */
static inline double parse_number(const char *name, const char *text, double low, double high)
{
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    if (errno || end == text || *end || !(value >= low && value <= high))
        usage_error(name, "not a number in the range allowed");
    return value;
}

static inline long option_long(int argc, char **argv, const char *name, long low, long high)
{
    return (long)parse_number(name, option_text(argc, argv, name), (double)low, (double)high);
}

static inline double option_double(int argc, char **argv, const char *name, double low, double high)
{
    return parse_number(name, option_text(argc, argv, name), low, high);
}

/* BYTES of memory aligned to, and where the kernel allows it backed by, huge pages. */
static inline void *huge_alloc(size_t bytes)
{
    void *memory = NULL;
    size_t rounded = (bytes + HUGE_PAGE_BYTES - 1) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
    if (posix_memalign(&memory, HUGE_PAGE_BYTES, rounded) != 0) {
        fprintf(stderr, "no memory for %zu bytes\n", rounded);
        exit(1);
    }
    /* A refusal is not an error: what was obtained is read back by huge_page_bytes(). */
    (void)madvise(memory, rounded, MADV_HUGEPAGE);
    return memory;
}

/* Bytes of this process that lie on transparent huge pages, or -1 where the kernel does not say. */
static inline long long huge_page_bytes(void)
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
