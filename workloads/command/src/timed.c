// Runs a command several times, and prints the time of each run as JSON, one object a line.
// Usage: timed FOLDER RUNS LIMIT KEPT COMMAND...
//   FOLDER  in which the command runs
//   RUNS    how many times it runs, one after the other
//   LIMIT   seconds after which a run is ended
//   KEPT    how many of the last bytes that a run prints are logged; 0: its output is discarded
// The command has no input.  It must end with 0, and leave no process behind: otherwise the last
// lines that it printed follow, then a sentence, and the program ends with 3.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
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

enum { FAILED = 3, LAST = 1500, MOST_KEPT = 1 << 20 };

extern char **environ;
static volatile sig_atomic_t group, is_over;
static char kept_bytes[MOST_KEPT];

static double now(void)
{
    struct timespec moment;
    clock_gettime(CLOCK_MONOTONIC, &moment);
    return moment.tv_sec + 1e-9 * moment.tv_nsec;
}

static double seconds(struct timeval time)
{
    return time.tv_sec + 1e-6 * time.tv_usec;
}

static void end_run(int number)
{
    (void)number;
    is_over = 1;
    if (group > 0) {
        kill(-group, SIGKILL);
    }
}

// Sets the time after which end_run is called; 0: never.
static void set_alarm(double limit)
{
    time_t whole = (time_t)limit;
    struct itimerval timer = {.it_value = {whole, (suseconds_t)(1e6 * (limit - whole))}};
    setitimer(ITIMER_REAL, &timer, NULL);
}

// Reads the last bytes of a file, and returns how many there are.
static size_t read_last(int file, size_t most)
{
    off_t size = lseek(file, 0, SEEK_END);
    off_t start = size > (off_t)most ? size - (off_t)most : 0;
    ssize_t count = pread(file, kept_bytes, most, start);
    return count > 0 ? (size_t)count : 0;
}

// Prints the last bytes of a file as a JSON object.
static void print_last(int file, size_t most)
{
    size_t count = read_last(file, most);
    printf("{\"printed\": \"");
    for (size_t at = 0; at < count; at++) {
        unsigned char byte = (unsigned char)kept_bytes[at];
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

// Waits up to a second for processes that the command left, and returns whether any still runs.
static int are_left(void)
{
    for (int wait = 0; wait < 1000; wait++) {
        pid_t ended;
        while ((ended = waitpid(-1, NULL, WNOHANG)) > 0) {
        }
        if (ended < 0) {
            return 0;
        }
        usleep(1000);
    }
    return 1;
}

// Prints what the command printed last and a sentence, and ends the program.
static void fail(int errors, const char *reason)
{
    size_t count = errors < 0 ? 0 : read_last(errors, LAST);
    fwrite(kept_bytes, 1, count, stdout);
    printf("%s%s\n", count > 0 && kept_bytes[count - 1] != '\n' ? "\n" : "", reason);
    exit(FAILED);
}

int main(int count, char **words)
{
    char reason[512];
    if (count < 6) {
        fail(-1, "usage: timed FOLDER RUNS LIMIT KEPT COMMAND...");
    }
    const char *folder = words[1];
    long runs = atol(words[2]);
    double limit = atof(words[3]);
    size_t kept = (size_t)atol(words[4]);
    char **argv = words + 5;
    kept = kept > MOST_KEPT ? MOST_KEPT : kept;
    // Orphans of the command become children of this process, which sees them.
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    signal(SIGALRM, end_run);
    int output = memfd_create("output", MFD_CLOEXEC);
    int errors = memfd_create("errors", MFD_CLOEXEC);
    if (output < 0 || errors < 0) {
        fail(-1, "this system has no memfd_create, which holds what the command prints");
    }
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    if (kept > 0) {
        posix_spawn_file_actions_adddup2(&actions, output, 1);
        posix_spawn_file_actions_adddup2(&actions, output, 2);
        errors = output;
    } else {
        posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
        posix_spawn_file_actions_adddup2(&actions, errors, 2);
    }
    posix_spawn_file_actions_addchdir_np(&actions, folder);
    printf("{\"tool\": \"timed\", \"runs\": %ld, \"limit\": %g, \"kept\": %zu}\n", runs, limit,
           kept);
    for (long run = 1; run <= runs; run++) {
        struct rusage before, after;
        pid_t child;
        int status;
        if (ftruncate(errors, 0) != 0 || lseek(errors, 0, SEEK_SET) != 0) {
            fail(-1, "the file with what the command prints cannot be emptied");
        }
        getrusage(RUSAGE_CHILDREN, &before);
        group = 0;
        double begun = now();
        int error = posix_spawnp(&child, argv[0], &actions, &attributes, argv, environ);
        if (error != 0) {
            snprintf(reason, sizeof reason, "%.200s cannot be started: %s", argv[0],
                     strerror(error));
            fail(-1, reason);
        }
        group = child;
        set_alarm(limit);
        while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
        }
        double ended = now();
        set_alarm(0);
        if (is_over) {
            snprintf(reason, sizeof reason, "the command was ended: no end after %g s", limit);
            fail(errors, reason);
        }
        if (WIFSIGNALED(status)) {
            snprintf(reason, sizeof reason, "the command was killed by signal %d (%s)",
                     WTERMSIG(status), strsignal(WTERMSIG(status)));
            fail(errors, reason);
        }
        if (WEXITSTATUS(status) != 0) {
            snprintf(reason, sizeof reason, "the command ended with exit code %d",
                     WEXITSTATUS(status));
            fail(errors, reason);
        }
        if (are_left()) {
            kill(-group, SIGKILL);
            fail(errors, "the command ended, and left a process that still runs");
        }
        getrusage(RUSAGE_CHILDREN, &after);
        printf("{\"run\": %ld, \"seconds\": %.9f, \"user\": %.6f, \"system\": %.6f, "
               "\"rss_bytes\": %ld}\n",
               run, ended - begun, seconds(after.ru_utime) - seconds(before.ru_utime),
               seconds(after.ru_stime) - seconds(before.ru_stime), 1024 * after.ru_maxrss);
        if (kept > 0) {
            print_last(output, kept);
        }
    }
    printf("{\"done\": true}\n");
    return fflush(stdout) == 0 ? 0 : FAILED;
}
