/* Preloaded into servers that offer no option for it: where one would listen at all addresses, it listens at one.
 *
 * STRATA_LISTEN is that address (IPv4).  An address that the program itself chooses stays as it is.
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

/* Ends the program: a server that listens everywhere must not pass for one that does not. */
static void give_up(const char *why)
{
	fprintf(stderr, "Error: listening: %s\n", why);
	_exit(3);
}

/* The one address, mapped into IPv6 where the socket is of that family. */
static void at_one(struct sockaddr_storage *address)
{
	const char *setting = getenv("STRATA_LISTEN");
	struct in_addr one;
	struct sockaddr_in *four = (struct sockaddr_in *)address;
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)address;

	if (setting == NULL || inet_pton(AF_INET, setting, &one) != 1)
		give_up("STRATA_LISTEN should hold an address");
	if (address->ss_family == AF_INET) {
		four->sin_addr = one;
		return;
	}
	six->sin6_addr.s6_addr[10] = six->sin6_addr.s6_addr[11] = 0xff;
	memcpy(&six->sin6_addr.s6_addr[12], &one, sizeof one);
}

/* Whether an address stands for all. */
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

int bind(int fd, const struct sockaddr *address, socklen_t length)
{
	static int (*real)(int, const struct sockaddr *, socklen_t);
	struct sockaddr_storage chosen = {0};

	if (real == NULL)
		*(void **)&real = dlsym(RTLD_NEXT, "bind");
	if (real == NULL)
		give_up("the C library has no bind");
	if (length > sizeof chosen)
		return real(fd, address, length);
	memcpy(&chosen, address, length);
	if (is_any(&chosen))
		at_one(&chosen);
	return real(fd, (const struct sockaddr *)&chosen, length);
}
