// Prints when it began, in nanoseconds since 1970: sandboxes have a monotonic clock of their own.
#include <stdio.h>
#include <time.h>

// Prints the present moment.  start.py subtracts the moment at which it began the sandbox's start.
int main(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    printf("%lld\n", 1000000000LL * now.tv_sec + now.tv_nsec);
}
