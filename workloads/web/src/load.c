/* Loads a web server over some connections: first each asks again at once, for SECONDS; then
 * requests are due at PERCENT of that rate, and their time counts from when they were due.
 * Usage: load ready|warmup|point ADDRESS PORT PAGE CONNECTIONS SECONDS PERCENT CPU
 * (an empty CPU: not pinned)
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <err.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 1000, MOST_REQUESTS = 1 << 24 };

static struct {
	int fd;
	long received; /* bytes of the present answer */
	double due;
} connections[MOST];
static int count, epoll;
static long length; /* bytes of an answer, which are the same for each of a page */
static char request[300], buffer[1 << 18];
static double times[MOST_REQUESTS]; /* milliseconds of each request */

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + 1e-9 * t.tv_nsec;
}

static void ask(int number, double due)
{
	connections[number].due = due;
	connections[number].received = 0;
	if (write(connections[number].fd, request, strlen(request)) != (ssize_t)strlen(request))
		err(1, "a request cannot be sent");
}

/* Reads what has come of an answer, and tells whether it is complete. */
static int read_answer(int number)
{
	ssize_t got = read(connections[number].fd, buffer, sizeof buffer - 1);

	if (got <= 0)
		err(1, "the server closed a connection");
	buffer[got] = 0;
	if (connections[number].received == 0) {
		const char *body = strstr(buffer, "\r\n\r\n"), *size = strstr(buffer, "Content-Length: ");

		if (strncmp(buffer, "HTTP/1.1 200 ", 13) != 0 || !body || !size || size > body)
			errx(1, "the answer is no page: %.60s", buffer);
		length = body + 4 - buffer + atol(size + 16);
	}
	connections[number].received += got;
	if (connections[number].received > length)
		errx(1, "an answer has more bytes than it says");
	return connections[number].received == length;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Loads for some seconds, at RATE requests per second, or (0) by connections that ask again at
 * once.  Prints the result under NAME, and returns the rate of answers.
 */
static double load(const char *name, double seconds, double rate)
{
	static int idle[MOST];
	int idles = 0;
	size_t sent = 0, done = 0;
	double start = now(), moment = start, last = start, next;

	while (idles < count)
		idle[idles] = idles, idles++;
	for (;;) {
		struct epoll_event events[64];
		struct timespec wait = {5, 0};
		int ready;

		while (next = rate > 0 ? start + sent / rate : moment,
		       idles > 0 && next <= moment && next < start + seconds) {
			if (++sent > MOST_REQUESTS)
				errx(1, "more requests than can be counted: take fewer seconds");
			ask(idle[--idles], next);
		}
		if (done == sent && next >= start + seconds)
			break;
		if (idles > 0 && next < start + seconds) {
			wait.tv_sec = next - moment;
			wait.tv_nsec = 1e9 * (next - moment - wait.tv_sec);
		}
		ready = epoll_pwait2(epoll, events, 64, &wait, NULL);
		if (ready < 0 || (ready == 0 && wait.tv_sec == 5))
			errx(1, "no answer came for 5 s");
		for (int i = 0; i < ready; i++) {
			int number = events[i].data.u32;

			if (!read_answer(number))
				continue;
			last = now();
			times[done++] = 1e3 * (last - connections[number].due);
			idle[idles++] = number;
		}
		moment = now();
	}
	qsort(times, done, sizeof *times, compare);
	printf("{\"%s\": %zu, \"seconds\": %.6f, \"rate\": %.9g, \"offered\": %.9g, ", name, done,
	       last - start, done / (last - start), rate);
	printf("\"p50\": %.6f, \"p99\": %.6f}\n", times[done / 2], times[done * 99 / 100]);
	return done / (last - start);
}

int main(int argc, char **argv)
{
	struct sockaddr_in server = {.sin_family = AF_INET};
	int one = 1;
	double rate;

	if (argc != 9 || inet_pton(AF_INET, argv[2], &server.sin_addr) != 1)
		errx(2, "usage: load ready|warmup|point ADDRESS PORT PAGE CONNECTIONS SECONDS PERCENT CPU");
	server.sin_port = htons(atoi(argv[3]));
	snprintf(request, sizeof request, "GET /%s HTTP/1.1\r\nHost: web\r\n\r\n", argv[4]);
	count = atoi(argv[5]) < MOST ? atoi(argv[5]) : MOST;
	if (*argv[8]) {
		cpu_set_t cpus;

		CPU_ZERO(&cpus);
		CPU_SET(atoi(argv[8]), &cpus);
		if (sched_setaffinity(0, sizeof cpus, &cpus) != 0)
			err(1, "processor %s", argv[8]);
	}
	prctl(PR_SET_TIMERSLACK, 1); /* ns by which the kernel may end a wait late */
	epoll = epoll_create1(0);
	for (int i = 0; i < count; i++) {
		struct epoll_event event = {.events = EPOLLIN, .data.u32 = i};
		int fd = connections[i].fd = socket(AF_INET, SOCK_STREAM, 0);

		if (connect(fd, (struct sockaddr *)&server, sizeof server) != 0)
			err(1, "no connection to %s", argv[2]);
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
		ask(i, 0);
		while (!read_answer(i))
			;
		epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
	}
	if (strcmp(argv[1], "ready") == 0)
		return 0;
	printf("{\"%s\": \"%s\", \"bytes\": %ld, \"connections\": %d, \"percent\": %s, \"cpu\": %s}\n",
	       argv[1], argv[4], length, count, argv[7], *argv[8] ? argv[8] : "null");
	rate = load("closed", atof(argv[6]), 0);
	load("paced", atof(argv[6]), rate * atof(argv[7]) / 100);
	printf("{\"%s\": \"%s\"}\n", strcmp(argv[1], "point") == 0 ? "end" : "warmed", argv[4]);
	return 0;
}
