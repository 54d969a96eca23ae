/* Preloaded into nuttcp: makes the kernel pace the connections of certain ports to a rate.
 *
 * nuttcp's own limit (-R) waits in a busy loop, which takes all of a processor at any rate, and
 * would hide the cost of a byte.  The kernel's pacing (SO_MAX_PACING_RATE) lets the sender sleep.
 * Both ends preload this library, and the kernel paces the sender: the client that connects to a
 * paced port, or the server that accepts there.
 *
 * STRATA_PACE is "FIRST LAST RATE": the range of ports, and bytes per second for each connection.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* Ends the program with a message and the status 3: it must not go on with a connection that is not
 * paced. */
static void exit_with_error(const char *why)
{
	fprintf(stderr, "Error: pacing: %s\n", why);
	_exit(3);
}

/* Returns the port of an address; 0 if it has none. */
static int get_port(const struct sockaddr *address)
{
	switch (address->sa_family) {
	case AF_INET:
		return ntohs(((const struct sockaddr_in *)address)->sin_port);
	case AF_INET6:
		return ntohs(((const struct sockaddr_in6 *)address)->sin6_port);
	default:
		return 0;
	}
}

/* Makes the kernel pace a connection if PORT, of the server's end, is in STRATA_PACE's range, which
 * pace.sh sets.  Ends the program if STRATA_PACE is wrong, or the kernel refuses. */
static void pace_connection(int fd, int port)
{
	const char *setting = getenv("STRATA_PACE");
	int first, last;
	uint64_t rate;

	if (setting == NULL || sscanf(setting, "%d %d %" SCNu64, &first, &last, &rate) != 3)
		exit_with_error("STRATA_PACE should hold two ports and a rate");
	if (port < first || port > last)
		return;
	if (setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof rate) != 0)
		exit_with_error("the kernel does not take SO_MAX_PACING_RATE");
}

/* Returns the C library's function with a name; ends the program if the library has none. */
static void *find_library_function(const char *name)
{
	void *function = dlsym(RTLD_NEXT, name);

	if (function == NULL)
		exit_with_error(name);
	return function;
}

/* Takes the place of the C library's connect, and paces the connection first. */
int connect(int fd, const struct sockaddr *address, socklen_t length)
{
	static int (*real)(int, const struct sockaddr *, socklen_t);

	/* C has no conversion of an object's address to a function's. */
	if (real == NULL)
		*(void **)&real = find_library_function("connect");
	pace_connection(fd, get_port(address));
	return real(fd, address, length);
}

/* Takes the place of the C library's accept, and paces the new connection. */
int accept(int fd, struct sockaddr *restrict address, socklen_t *restrict length)
{
	static int (*real)(int, struct sockaddr *, socklen_t *);
	struct sockaddr_storage local = {0};
	socklen_t local_length = sizeof local;
	int connection;

	/* C has no conversion of an object's address to a function's. */
	if (real == NULL)
		*(void **)&real = find_library_function("accept");
	connection = real(fd, address, length);
	if (connection >= 0 && getsockname(connection, (struct sockaddr *)&local, &local_length) == 0)
		pace_connection(connection, get_port((struct sockaddr *)&local));
	return connection;
}
