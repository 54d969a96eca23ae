/* Loads a web server over some connections: first each sends its next request at once, for SECONDS;
 * then requests are due at PERCENT of that rate, and their time counts from when they were due.
 * Usage: load ready|warmup|point ADDRESS PORT PAGE CONNECTIONS SECONDS PERCENT CPU
 * (an empty CPU: not pinned)
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <err.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "strata.h"

enum { MAX_CONNECTIONS = 1000, MAX_REQUESTS = 1 << 24, PATIENCE_SECONDS = 5 };

static struct {
	int fd;
	long received; /* bytes of the present answer */
	double due;    /* when the present request was due, by the monotonic clock */
} connections[MAX_CONNECTIONS];
static int count, epoll;
static long length; /* bytes of an answer, which are the same for each of a page */
static char request[300], buffer[1 << 18];
static double times[MAX_REQUESTS]; /* milliseconds of each request */

/* Sends a request over the connection of a number; DUE is the moment, by the monotonic clock, from
 * which its time counts.  Ends the program if the request, which is short, cannot be sent whole. */
static void send_request(int number, double due)
{
	connections[number].due = due;
	connections[number].received = 0;
	if (write(connections[number].fd, request, strlen(request)) != (ssize_t)strlen(request))
		err(1, "a request cannot be sent");
}

/* Reads the part of an answer that has come, and returns whether the answer is complete.  The first
 * part must hold the whole head, which sets LENGTH.  Ends the program if the server closed the
 * connection, or the answer is no page. */
static int read_answer(int number)
{
	ssize_t got = read(connections[number].fd, buffer, sizeof buffer - 1);

	if (got < 0)
		err(1, "an answer cannot be read");
	if (got == 0)
		errx(1, "the server closed a connection");
	buffer[got] = 0;
	if (connections[number].received == 0) {
		const char *body = strstr(buffer, "\r\n\r\n"), *size = strstr(buffer, "Content-Length: ");

		if (strncmp(buffer, "HTTP/1.1 200 ", 13) != 0 || !body || !size || size > body)
			errx(1, "the answer is no page: %.60s", buffer);
		/* The head ends with four bytes, and "Content-Length: " has sixteen. */
		length = body + 4 - buffer + atol(size + 16);
	}
	connections[number].received += got;
	if (connections[number].received > length)
		errx(1, "an answer has more bytes than it says");
	return connections[number].received == length;
}

/* Compares two times for qsort. */
static int compare_times(const void *first, const void *second)
{
	double x = *(const double *)first, y = *(const double *)second;

	return (x > y) - (x < y);
}

/* Waits for answers from the moment NOW until the moment UNTIL, or with 0 as long as the patience.
 * Fills EVENTS, and returns their number.  Ends the program if the patience ends without answer.
 * Both are seconds of the monotonic clock. */
static int wait_for_answers(struct epoll_event events[64], double now, double until)
{
	struct timespec wait = {PATIENCE_SECONDS, 0};
	int ready;

	if (until > 0) {
		wait.tv_sec = until - now;
		wait.tv_nsec = 1e9 * (until - now - wait.tv_sec);
	}
	ready = epoll_pwait2(epoll, events, 64, &wait, NULL);
	if (ready < 0)
		err(1, "waiting for answers");
	if (ready == 0 && until == 0)
		errx(1, "no answer came for %d s", PATIENCE_SECONDS);
	return ready;
}

/* Loads the server for some seconds at RATE requests per second, or (0) by connections that send
 * the next request at once.  Prints the result under NAME, by keys that parse.py reads, and returns
 * the rate of answers per second.
 */
static double load(const char *name, double seconds, double rate)
{
	static int idle[MAX_CONNECTIONS]; /* the numbers of the connections without a request */
	int idles = 0;
	size_t sent = 0, done = 0;
	double start = read_monotonic_clock(), moment = start, last = start, next;

	while (idles < count) {
		idle[idles] = idles;
		idles++;
	}
	for (;;) {
		struct epoll_event events[64];
		int ready;

		/* The next request is due at NEXT: by the rate, or at once. */
		while (next = rate > 0 ? start + sent / rate : moment,
		       idles > 0 && next <= moment && next < start + seconds) {
			if (++sent > MAX_REQUESTS)
				errx(1, "more requests than can be counted: take fewer seconds");
			send_request(idle[--idles], next);
		}
		if (done == sent && next >= start + seconds)
			break;
		ready = wait_for_answers(events, moment, idles > 0 && next < start + seconds ? next : 0);
		for (int i = 0; i < ready; i++) {
			int number = events[i].data.u32;

			if (!read_answer(number))
				continue;
			last = read_monotonic_clock();
			times[done++] = 1e3 * (last - connections[number].due);
			idle[idles++] = number;
		}
		moment = read_monotonic_clock();
	}
	qsort(times, done, sizeof *times, compare_times);
	printf("{\"%s\": %zu, \"seconds\": %.6f, \"rate\": %.9g, \"offered\": %.9g, ", name, done,
	       last - start, done / (last - start), rate);
	printf("\"p50\": %.6f, \"p99\": %.6f}\n", times[done / 2], times[done * 99 / 100]);
	return done / (last - start);
}

/* Pins this process to a CPU, whose number is a text; ends the program if it cannot. */
static void pin_process(const char *cpu)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(atoi(cpu), &cpus);
	if (sched_setaffinity(0, sizeof cpus, &cpus) != 0)
		err(1, "processor %s", cpu);
}

/* Opens all COUNT connections, and gets the page once over each of them: this sets LENGTH, which
 * the log's first line needs. */
static void open_connections(const struct sockaddr_in *server, const char *address)
{
	int one = 1;

	epoll = epoll_create1(0);
	for (int i = 0; i < count; i++) {
		struct epoll_event event = {.events = EPOLLIN, .data.u32 = i};
		int fd = connections[i].fd = socket(AF_INET, SOCK_STREAM, 0);

		if (connect(fd, (const struct sockaddr *)server, sizeof *server) != 0)
			err(1, "no connection to %s", address);
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
		send_request(i, 0);
		while (!read_answer(i))
			;
		epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
	}
}

/* Loads the server as the arguments say, and prints a point of the log, as parse.py expects it.  In
 * the mode `ready` it only proves that the server answers, and prints nothing. */
int main(int argc, char **argv)
{
	struct sockaddr_in server = {.sin_family = AF_INET};

	if (argc != 9 || inet_pton(AF_INET, argv[2], &server.sin_addr) != 1)
		errx(2, "usage: load ready|warmup|point ADDRESS PORT PAGE CONNECTIONS SECONDS PERCENT CPU");
	const char *mode = argv[1], *page = argv[4], *percent = argv[7], *cpu = argv[8];
	double seconds = atof(argv[6]);

	server.sin_port = htons(atoi(argv[3]));
	snprintf(request, sizeof request, "GET /%s HTTP/1.1\r\nHost: web\r\n\r\n", page);
	count = atoi(argv[5]) < MAX_CONNECTIONS ? atoi(argv[5]) : MAX_CONNECTIONS;
	if (*cpu)
		pin_process(cpu);
	prctl(PR_SET_TIMERSLACK, 1); /* ns by which the kernel may end a wait late */
	open_connections(&server, argv[2]);
	if (strcmp(mode, "ready") == 0)
		return 0;
	printf("{\"%s\": \"%s\", \"bytes\": %ld, \"connections\": %d, \"percent\": %s, \"cpu\": %s}\n",
	       mode, page, length, count, percent, *cpu ? cpu : "null");
	double rate = load("closed", seconds, 0);
	load("paced", seconds, rate * atof(percent) / 100);
	printf("{\"%s\": \"%s\"}\n", strcmp(mode, "point") == 0 ? "end" : "warmed", page);
	return 0;
}
