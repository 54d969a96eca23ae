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
/* What a measurement of memory sums: the first touch of a page, the second, and later accesses. */
enum access { TOUCH, AGAIN, MAPPED, ACCESSES };
static const char *const ACCESS_NAME[ACCESSES] = {"touch", "again", "mapped"};

/* Makes one call of a kind before SMALL, and returns whether it succeeded.  start_echo() must have
 * set up the pipes. */
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
    /* The program is this one, whose main() ends at once under the name "true". */
    if (child == 0)
        _exit(execl("/proc/self/exe", "true", (char *)NULL));
    return waitpid(child, &status, 0) == child && status == 0;
}

/* Writes to each page of fresh memory in PASSES passes, the first in order of addresses.  Adds the
 * seconds of each access to SUMS, and sets HUGE_BYTES to the bytes on huge pages (-1: unknown).
 * Returns whether the kernel gave and took back the memory; if not, errno says why. */
static int touch_memory(enum call kind, double sums[ACCESSES], long long *huge_bytes)
{
    size_t mapped_bytes = BYTES + HUGE_PAGE_BYTES;
    char *mapped = mmap(NULL, mapped_bytes, PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED)
        return 0;
    char *memory = mapped + (HUGE_PAGE_BYTES - (size_t)mapped % HUGE_PAGE_BYTES);
    (void)madvise(memory, BYTES, kind == HUGE ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    for (int pass = 0; pass < PASSES; pass++) {
        double start = read_monotonic_clock();
        for (size_t i = 0; i < PAGES; i++) {
            /* An odd factor leads to each page once, since PAGES is a power of two. */
            size_t page = pass ? i * 2654435761u % PAGES : i;
            /* Another cache line in each page, so that lines do not compete for one set. */
            *(volatile char *)(memory + page * PAGE + page * 64 % PAGE) = 1;
        }
        sums[pass < MAPPED ? pass : MAPPED] += read_monotonic_clock() - start;
    }
    *huge_bytes = count_huge_page_bytes();
    return munmap(mapped, mapped_bytes) == 0;
}

/* Makes calls of a kind for LIMIT seconds, and prints their number and time; for memory it prints
 * them for each access.  The first batch is a warm-up: COUNT starts below zero, and the batch's
 * time is dropped.  Ends the program if a call fails.  parse.py reads the names and keys. */
static void measure(enum call kind, double limit)
{
    int is_memory = kind >= SMALL;
    double begun = read_monotonic_clock(), sums[ACCESSES] = {0};
    long long count = -COUNT[kind], huge_bytes = -1;
    while (count <= 0 || read_monotonic_clock() - begun < limit) {
        double start = read_monotonic_clock();
        int good = !is_memory || touch_memory(kind, sums, &huge_bytes);
        for (int i = 0; good && !is_memory && i < COUNT[kind]; i++)
            good = make_call(kind);
        if (!good)
            exit_with_error(is_memory ? "mmap" : NAME[kind], strerror(errno));
        if (!is_memory)
            sums[0] += read_monotonic_clock() - start;
        if (count < 0)
            memset(sums, 0, sizeof sums);
        count += COUNT[kind];
    }
    for (int i = 0; i < (is_memory ? ACCESSES : 1); i++) {
        /* The first two passes are TOUCH and AGAIN. */
        long long calls = i == MAPPED ? count * (PASSES - 2) : count;
        printf("{\"call\": \"%s%s\", \"count\": %lld, \"seconds\": %.9g, \"ns\": %.9g, "
               "\"huge_page_bytes\": %lld}\n",
               is_memory ? ACCESS_NAME[i] : "", NAME[kind], calls, sums[i],
               1e9 * sums[i] / (double)calls, huge_bytes);
    }
    fflush(stdout);
}

/* Starts a process that returns each byte of one pipe by the other, until this process ends.  Sets
 * the pipes; ends the program if there are none. */
static void start_echo(void)
{
    if (pipe(request) != 0 || pipe(answer) != 0)
        exit_with_error("pipe", strerror(errno));
    if (fork() == 0) {
        char byte;
        close(request[1]);
        while (read(request[0], &byte, 1) == 1 && write(answer[1], &byte, 1) == 1)
            continue;
        _exit(0);
    }
}

/* Measures all kinds of calls in an order that seed and lap determine, and prints the log, whose
 * first and last line parse.py expects.  The order of the draws binds the order of the kinds. */
int main(int argc, char **argv)
{
    /* This process is the program that make_call() starts. */
    if (strcmp(argv[0], "true") == 0)
        return 0;
    double limit = get_number(argc, argv, "--seconds", 0.001, 3600);
    srandom((unsigned)(get_integer(argc, argv, "--seed", 0, LONG_MAX) * 1000003 +
                       get_integer(argc, argv, "--lap", 0, LONG_MAX)));
    start_echo();
    printf("{\"tool\": \"strata-calls\", \"seconds\": %.9g}\n", limit);
    fflush(stdout);
    /* Steps of any width come to each kind, since the number of kinds is prime. */
    long start = random() % CALLS, step = 1 + random() % (CALLS - 1);
    for (int i = 0; i < CALLS; i++)
        measure((enum call)((start + i * step) % CALLS), limit);
    puts("{\"done\": true}");
    return 0;
}
