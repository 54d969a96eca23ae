/* Preloaded into nuttcp, so that the kernel paces the connections of certain ports to a rate.
 *
 * nuttcp's own limit (-R) waits in a busy loop: it takes all of a processor, whatever the rate, and what a byte
 * costs could not be seen.  The kernel's pacing (SO_MAX_PACING_RATE) lets the sender sleep.  Both ends preload it,
 * and the one that sends is paced: the client that connects to such a port, or the server that accepts there.
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

/* Ends the program: a connection that is not paced must not pass for one that is. */
static void give_up(const char *why)
{
	fprintf(stderr, "Error: pacing: %s\n", why);
	_exit(3);
}

/* The port of an address; 0 where it has none. */
static int port_of(const struct sockaddr *address)
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

/* Paces a connection if it is one of the server's ports. */
static void pace(int fd, int port)
{
	const char *setting = getenv("STRATA_PACE");
	int first, last;
	uint64_t rate;

	if (setting == NULL || sscanf(setting, "%d %d %" SCNu64, &first, &last, &rate) != 3)
		give_up("STRATA_PACE should hold two ports and a rate");
	if (port < first || port > last)
		return;
	if (setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof rate) != 0)
		give_up("the kernel does not take SO_MAX_PACING_RATE");
}

/* The function of the C library that one of ours stands before. */
static void *next(const char *name)
{
	void *found = dlsym(RTLD_NEXT, name);

	if (found == NULL)
		give_up(name);
	return found;
}

int connect(int fd, const struct sockaddr *address, socklen_t length)
{
	static int (*real)(int, const struct sockaddr *, socklen_t);

	if (real == NULL)
		*(void **)&real = next("connect");
	pace(fd, port_of(address));
	return real(fd, address, length);
}

int accept(int fd, struct sockaddr *restrict address, socklen_t *restrict length)
{
	static int (*real)(int, struct sockaddr *, socklen_t *);
	struct sockaddr_storage own = {0};
	socklen_t own_length = sizeof own;
	int connection;

	if (real == NULL)
		*(void **)&real = next("accept");
	connection = real(fd, address, length);
	if (connection >= 0 && getsockname(connection, (struct sockaddr *)&own, &own_length) == 0)
		pace(connection, port_of((struct sockaddr *)&own));
	return connection;
}
