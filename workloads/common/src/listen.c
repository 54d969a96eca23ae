/* Preloaded into servers that lack an option for their address: makes them listen at one address
 * instead of at all.
 *
 * STRATA_LISTEN is that address (IPv4).  A single address that the program chooses is not changed.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Ends the program with a message and the status 3: it must not go on as a server that listens
 * everywhere. */
static void exit_with_error(const char *why)
{
	fprintf(stderr, "Error: listening: %s\n", why);
	_exit(3);
}

/* Replaces the host in ADDRESS by STRATA_LISTEN, mapped into IPv6 for a socket of IPv6; the port
 * stays.  Ends the program if STRATA_LISTEN holds no IPv4 address. */
static void set_address(struct sockaddr_storage *address)
{
	const char *setting = getenv("STRATA_LISTEN");
	struct in_addr chosen;
	struct sockaddr_in *ipv4 = (struct sockaddr_in *)address;
	struct sockaddr_in6 *ipv6 = (struct sockaddr_in6 *)address;

	if (setting == NULL || inet_pton(AF_INET, setting, &chosen) != 1)
		exit_with_error("STRATA_LISTEN should hold an address");
	if (address->ss_family == AF_INET) {
		ipv4->sin_addr = chosen;
		return;
	}
	/* ::ffff:ADDRESS; the other bytes of the unspecified address are 0. */
	ipv6->sin6_addr.s6_addr[10] = ipv6->sin6_addr.s6_addr[11] = 0xff;
	memcpy(&ipv6->sin6_addr.s6_addr[12], &chosen, sizeof chosen);
}

/* Returns whether an address means all addresses of the host. */
static int is_any(const struct sockaddr_storage *address)
{
	switch (address->ss_family) {
	case AF_INET:
		return ((const struct sockaddr_in *)address)->sin_addr.s_addr == htonl(INADDR_ANY);
	case AF_INET6:
		return IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)address)->sin6_addr);
	default:
		return 0;
	}
}

/* Takes the place of the C library's bind, and changes only an address that means all. */
int bind(int fd, const struct sockaddr *address, socklen_t length)
{
	static int (*real)(int, const struct sockaddr *, socklen_t);
	struct sockaddr_storage changed = {0};

	/* C has no conversion of an object's address to a function's. */
	if (real == NULL)
		*(void **)&real = dlsym(RTLD_NEXT, "bind");
	if (real == NULL)
		exit_with_error("the C library has no bind");
	/* The kernel refuses an address that is too long. */
	if (length > sizeof changed)
		return real(fd, address, length);
	memcpy(&changed, address, length);
	if (is_any(&changed))
		set_address(&changed);
	return real(fd, (const struct sockaddr *)&changed, length);
}
