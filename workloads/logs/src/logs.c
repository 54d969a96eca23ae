/* Writes lines of 80 bytes, one at a time, to the standard output of the container's first process,
 * which the engine logs.  Outside of containers they go to a process that reads and discards them.
 * The clock starts once the engine's buffers are full, and stops with the last write, when they
 * are full again: as many lines were taken as were written.
 *
 * Usage:  logs --lines N
 * Output: one JSON object a line; the last one is {"done": true}. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "strata.h"

/* Docker holds up to a MiB of a container's output in memory. */
enum { BYTES = 80, FILLING = 20000 };

/* Returns whether this process is in a container: in a namespace of processes whose first process
 * has the same files. */
static int is_in_container(void)
{
    char name[64] = "";
    struct stat here, first;
    if (readlink("/proc/self/ns/pid", name, sizeof name - 1) < 0)
        return 0;
    /* The kernel's number of the first namespace of processes never changes. */
    if (strcmp(name, "pid:[4026531836]") == 0)
        return 0;
    /* Native's root is another one than the first process's.  gVisor does not show the latter. */
    return stat("/proc/1/root", &first) != 0 ||
           (stat("/", &here) == 0 && here.st_dev == first.st_dev && here.st_ino == first.st_ino);
}

/* Starts a process that reads a pipe and discards the bytes until the pipe closes.  Returns the end
 * of the pipe for writing; -1: there is no pipe. */
static int start_reader(void)
{
    static char buffer[1 << 16];
    int ends[2];
    if (pipe(ends) != 0)
        return -1;
    if (fork() == 0) {
        close(ends[1]);
        while (read(ends[0], buffer, sizeof buffer) > 0) {
        }
        _exit(0);
    }
    return ends[1];
}

/* Writes the lines, and prints the log, whose keys parse.py reads; the status is 1 if nothing takes
 * lines. */
int main(int argc, char **argv)
{
    long lines = get_integer(argc, argv, "--lines", 1, 1000000000);
    int in_container = is_in_container();
    int output = in_container ? open("/proc/1/fd/1", O_WRONLY) : start_reader();
    struct stat kind;
    char line[BYTES + 1];
    if (output < 0 || fstat(output, &kind) != 0 || !S_ISFIFO(kind.st_mode)) {
        puts("the standard output of this system's first process is no pipe to an engine");
        return 1;
    }
    printf("{\"tool\": \"strata-logs\", \"bytes\": %d, \"to\": \"%s\"}\n", BYTES,
           in_container ? "engine" : "reader");
    fflush(stdout);
    double start = 0;
    /* The first FILLING lines have numbers up to 0. */
    for (long i = 1 - FILLING; i <= lines; i++) {
        if (i == 1)
            start = read_monotonic_clock();
        snprintf(line, sizeof line, "line %-74ld\n", i);
        if (write(output, line, BYTES) != BYTES) {
            perror("write");
            return 1;
        }
    }
    double seconds = read_monotonic_clock() - start;
    printf("{\"lines\": %ld, \"seconds\": %.9g, \"rate\": %.9g}\n", lines, seconds,
           (double)lines / seconds);
    puts("{\"done\": true}");
    return 0;
}
