// Runs a command several times, and prints the time of each run as JSON, one object a line.
// Usage: timed FOLDER RUNS LIMIT KEPT COMMAND...
//   FOLDER  in which the command runs
//   RUNS    how many times it runs, one after the other
//   LIMIT   seconds after which a run is ended
//   KEPT    how many of the last bytes that a run prints are logged; 0: its output is discarded
// The command has no input.  It must end with 0, and leave no process behind: otherwise the last
// lines that it printed follow, then a sentence, and the program ends with 3.
// It uses no file of another folder: an image of one's own gets this workload's folder only.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// The exit status of a failure, the bytes that a failure shows, and the most bytes that are logged.
enum { FAILED = 3, LAST = 1500, MAX_KEPT = 1 << 20 };

extern char **environ;
static posix_spawnattr_t attributes;
static posix_spawn_file_actions_t actions;
// The process group of the run, and whether end_run() ended it.
static volatile sig_atomic_t group, is_over;
// The file, in memory, with what a run prints: all of it, or its errors only if KEPT is 0.
static int output = -1;
static char last_bytes[MAX_KEPT];

// Returns the seconds of the monotonic clock.
static double read_monotonic_clock(void)
{
    struct timespec moment;
    clock_gettime(CLOCK_MONOTONIC, &moment);
    return moment.tv_sec + 1e-9 * moment.tv_nsec;
}

// Returns a time of the kernel in seconds.
static double to_seconds(struct timeval time)
{
    return time.tv_sec + 1e-6 * time.tv_usec;
}

// Handles SIGALRM: ends the run with all processes of its group.
static void end_run(int number)
{
    (void)number;
    is_over = 1;
    if (group > 0) {
        kill(-group, SIGKILL);
    }
}

// Sets the seconds after which end_run() is called; 0: never.
static void set_alarm(double limit)
{
    time_t whole = (time_t)limit;
    struct itimerval timer = {.it_value = {whole, (suseconds_t)(1e6 * (limit - whole))}};
    setitimer(ITIMER_REAL, &timer, NULL);
}

// Reads the last bytes of the output, at most MOST, and returns how many they are.
static size_t read_last_output(size_t most)
{
    off_t size = lseek(output, 0, SEEK_END);
    off_t start = size > (off_t)most ? size - (off_t)most : 0;
    ssize_t count = pread(output, last_bytes, most, start);
    return count > 0 ? (size_t)count : 0;
}

// Prints the last bytes of the output, at most MOST, as a JSON object, in which parse.py searches
// for further metrics.  Bytes above 0x7f stay as they are, and the first may be a part of a
// character.
static void print_last_output(size_t most)
{
    size_t count = read_last_output(most);
    printf("{\"printed\": \"");
    for (size_t i = 0; i < count; i++) {
        unsigned char byte = (unsigned char)last_bytes[i];
        if (byte == '"' || byte == '\\') {
            printf("\\%c", byte);
        } else if (byte < 0x20 || byte == 0x7f) {
            printf("\\u%04x", byte);
        } else {
            putchar(byte);
        }
    }
    printf("\"}\n");
}

// Prints the end of the output and then a sentence, as printf does, and ends the program with
// FAILED.  Both are in the log of the step that failed.
__attribute__((format(printf, 1, 2), noreturn)) static void fail(const char *format, ...)
{
    size_t count = read_last_output(LAST);
    fwrite(last_bytes, 1, count, stdout);
    if (count > 0 && last_bytes[count - 1] != '\n') {
        putchar('\n');
    }
    va_list values;
    va_start(values, format);
    vprintf(format, values);
    va_end(values);
    putchar('\n');
    exit(FAILED);
}

// Waits up to a second for processes that the command left, and returns whether any still runs.
// They are children of this process, which main() made their reaper.
static int has_left_processes(void)
{
    for (int wait = 0; wait < 1000; wait++) {
        pid_t ended;
        while ((ended = waitpid(-1, NULL, WNOHANG)) > 0) {
        }
        // No children are left.
        if (ended < 0) {
            return 0;
        }
        usleep(1000);
    }
    return 1;
}

// Sets how the command starts: in FOLDER, in a process group of its own, without input.  Its errors
// are always kept, and its output if IS_KEPT.
static void set_start(const char *folder, int is_kept)
{
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    if (is_kept) {
        posix_spawn_file_actions_adddup2(&actions, output, 1);
    } else {
        posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    }
    posix_spawn_file_actions_adddup2(&actions, output, 2);
    posix_spawn_file_actions_addchdir_np(&actions, folder);
}

// Fails unless a run ended with STATUS 0 within the limit, and left no process.  STATUS: as waitpid
// sets it.  LIMIT: in seconds, for the message.
static void require_success(int status, double limit)
{
    if (is_over) {
        fail("the command was ended: no end after %g s", limit);
    }
    if (WIFSIGNALED(status)) {
        fail("the command was killed by signal %d (%s)", WTERMSIG(status),
             strsignal(WTERMSIG(status)));
    }
    if (WEXITSTATUS(status) != 0) {
        fail("the command ended with exit code %d", WEXITSTATUS(status));
    }
    if (has_left_processes()) {
        kill(-group, SIGKILL);
        fail("the command ended, and left a process that still runs");
    }
}

// Runs the command once, and prints the wall time, CPU times and memory of run NUMBER, by keys that
// parse.py reads.  LIMIT: seconds after which the run is ended.  Fails if the run does.
static void time_run(long number, char **argv, double limit)
{
    struct rusage before, after;
    pid_t child;
    int status;
    if (ftruncate(output, 0) != 0 || lseek(output, 0, SEEK_SET) != 0) {
        fail("the file with what the command prints cannot be emptied");
    }
    getrusage(RUSAGE_CHILDREN, &before);
    group = 0;
    double begun = read_monotonic_clock();
    int error = posix_spawnp(&child, argv[0], &actions, &attributes, argv, environ);
    if (error != 0) {
        fail("%.200s cannot be started: %s", argv[0], strerror(error));
    }
    group = child;
    set_alarm(limit);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    double ended = read_monotonic_clock();
    set_alarm(0);
    require_success(status, limit);
    getrusage(RUSAGE_CHILDREN, &after);
    // ru_maxrss, in KiB, is of the largest process of all runs until now.
    printf("{\"run\": %ld, \"seconds\": %.9f, \"user\": %.6f, \"system\": %.6f, "
           "\"rss_bytes\": %ld}\n",
           number, ended - begun, to_seconds(after.ru_utime) - to_seconds(before.ru_utime),
           to_seconds(after.ru_stime) - to_seconds(before.ru_stime), 1024 * after.ru_maxrss);
}

// Runs the command as often as the arguments say, and prints the log.
int main(int count, char **arguments)
{
    if (count < 6) {
        fail("usage: timed FOLDER RUNS LIMIT KEPT COMMAND...");
    }
    long runs = atol(arguments[2]);
    double limit = atof(arguments[3]);
    size_t kept = (size_t)atol(arguments[4]);
    kept = kept > MAX_KEPT ? MAX_KEPT : kept;
    // Orphans of the command become children of this process, which sees them.
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    signal(SIGALRM, end_run);
    output = memfd_create("output", MFD_CLOEXEC);
    if (output < 0) {
        fail("this system has no memfd_create, which holds what the command prints");
    }
    set_start(arguments[1], kept > 0);
    printf("{\"tool\": \"timed\", \"runs\": %ld, \"limit\": %g, \"kept\": %zu}\n", runs, limit,
           kept);
    for (long run = 1; run <= runs; run++) {
        time_run(run, arguments + 5, limit);
        if (kept > 0) {
            print_last_output(kept);
        }
    }
    printf("{\"done\": true}\n");
    return fflush(stdout) == 0 ? 0 : FAILED;
}
