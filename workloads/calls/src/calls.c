/* Times calls into the kernel and accesses to 64 MiB of memory, kind by kind in random order.
 * Usage:  calls --seconds S --seed N --lap N
 * Output: one JSON object a line; the last one is {"done": true}. */
#define _GNU_SOURCE
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "strata.h"

enum { PAGE = 4096, PAGES = 16384, BYTES = PAGE * PAGES, PASSES = 50 };
enum call { GETPID, PIPE, FORKEXEC, STAT, MMAP, SMALL, HUGE, CALLS };
static const char *const NAME[CALLS] = {"getpid", "pipe", "forkexec", "stat", "mmap", "", "-huge"};
static const int COUNT[CALLS] = {1000, 200, 5, 200, 200, PAGES, PAGES};
static int request[2], answer[2]; /* the pipes to and from a process that returns each byte */

/* Makes one call, which is no access to memory; returns whether it succeeded. */
static int make_call(enum call kind)
{
    struct stat file;
    int status;
    if (kind == GETPID)
        return syscall(SYS_getpid) > 0;
    if (kind == PIPE)
        return write(request[1], "", 1) == 1 && read(answer[0], &status, 1) == 1;
    if (kind == STAT)
        return stat("/usr/bin/env", &file) == 0;
    if (kind == MMAP) {
        void *page = mmap(NULL, PAGE, PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        return page != MAP_FAILED && munmap(page, PAGE) == 0;
    }
    pid_t child = fork();
    if (child == 0)
        _exit(execl("/proc/self/exe", "true", (char *)NULL));
    return waitpid(child, &status, 0) == child && status == 0;
}

/* Writes to each page of fresh memory in several passes, the first in order of addresses; adds the
 * seconds of the first, the second and all others to SUM.  Returns whether there is memory. */
static int touch_memory(enum call kind, double *sum, long long *huge_bytes)
{
    size_t room = BYTES + HUGE_PAGE_BYTES;
    char *mapped = mmap(NULL, room, PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED)
        return 0;
    char *memory = mapped + (HUGE_PAGE_BYTES - (size_t)mapped % HUGE_PAGE_BYTES);
    (void)madvise(memory, BYTES, kind == HUGE ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    for (int pass = 0; pass < PASSES; pass++) {
        double start = monotonic_seconds();
        for (size_t i = 0; i < PAGES; i++) {
            size_t page = pass ? i * 2654435761u % PAGES : i;
            *(volatile char *)(memory + page * PAGE + page * 64 % PAGE) = 1;
        }
        sum[pass < 2 ? pass : 2] += monotonic_seconds() - start;
    }
    *huge_bytes = huge_page_bytes();
    return munmap(mapped, room) == 0;
}

/* Makes calls of a kind for some seconds, and prints their times without those of the first batch.
 * Memory has a count and a time for the first touch of a page, the second, and later accesses. */
static void measure(enum call kind, double limit)
{
    static const char *const ACCESS[3] = {"touch", "again", "mapped"};
    double begun = monotonic_seconds(), sum[3] = {0};
    long long count = -COUNT[kind], huge_bytes = -1;
    while (count <= 0 || monotonic_seconds() - begun < limit) {
        double start = monotonic_seconds();
        int good = kind < SMALL || touch_memory(kind, sum, &huge_bytes);
        for (int i = 0; good && kind < SMALL && i < COUNT[kind]; i++)
            good = make_call(kind);
        if (!good)
            usage_error(kind < SMALL ? NAME[kind] : "mmap", strerror(errno));
        if (kind < SMALL)
            sum[0] += monotonic_seconds() - start;
        if (count < 0)
            sum[0] = sum[1] = sum[2] = 0;
        count += COUNT[kind];
    }
    for (int i = 0; i < (kind < SMALL ? 1 : 3); i++) {
        long long calls = i < 2 ? count : count * (PASSES - 2);
        printf("{\"call\": \"%s%s\", \"count\": %lld, \"seconds\": %.9g, \"ns\": %.9g, "
               "\"huge_page_bytes\": %lld}\n",
               kind < SMALL ? "" : ACCESS[i], NAME[kind], calls, sum[i],
               1e9 * sum[i] / (double)calls, huge_bytes);
    }
    fflush(stdout);
}

int main(int argc, char **argv)
{
    if (strcmp(argv[0], "true") == 0)
        return 0;
    double limit = option_double(argc, argv, "--seconds", 0.001, 3600);
    srandom((unsigned)(option_long(argc, argv, "--seed", 0, LONG_MAX) * 1000003 +
                       option_long(argc, argv, "--lap", 0, LONG_MAX)));
    if (pipe(request) != 0 || pipe(answer) != 0)
        usage_error("pipe", strerror(errno));
    if (fork() == 0) {
        char byte;
        close(request[1]);
        while (read(request[0], &byte, 1) == 1 && write(answer[1], &byte, 1) == 1)
            continue;
        _exit(0);
    }
    printf("{\"tool\": \"strata-calls\", \"seconds\": %.9g}\n", limit);
    fflush(stdout);
    /* Steps of any width come to each kind, since the number of kinds is prime. */
    long start = random() % CALLS, step = 1 + random() % (CALLS - 1);
    for (int i = 0; i < CALLS; i++)
        measure((enum call)((start + i * step) % CALLS), limit);
    puts("{\"done\": true}");
    return 0;
}
