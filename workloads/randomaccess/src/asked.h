/* A process that stays, and works when it is asked to, over a socket in the file system. */
#ifndef ASKED_H
#define ASKED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static inline void socket_failed(const char *path)
{
    perror(path);
    exit(1);
}

/* A socket, and the address PATH for it. */
static inline int socket_for(const char *path, struct sockaddr_un *address)
{
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    if (strlen(path) >= sizeof address->sun_path) {
        fprintf(stderr, "%s: a socket's path has at most %zu bytes\n", path, sizeof address->sun_path - 1);
        exit(2);
    }
    strcpy(address->sun_path, path);
    int at = socket(AF_UNIX, SOCK_STREAM, 0);
    if (at < 0)
        socket_failed(path);
    return at;
}

/* A socket at PATH, at which others may ask from now on. */
static inline int listen_at(const char *path)
{
    struct sockaddr_un address;
    int at = socket_for(path, &address);
    if (bind(at, (struct sockaddr *)&address, sizeof address) != 0 || listen(at, 1) != 0)
        socket_failed(path);
    return at;
}

/* Waits until somebody asks: what is written there is the answer, which fclose() ends. */
static inline FILE *next_asked(int at, const char *path)
{
    int one = accept(at, NULL, NULL);
    FILE *answer = one < 0 ? NULL : fdopen(one, "w");
    if (!answer)
        socket_failed(path);
    return answer;
}

/* Asks whoever listens at PATH, and prints the answer; the exit code, 1 where there is none. */
static inline int ask(const char *path)
{
    struct sockaddr_un address;
    char piece[4096];
    ssize_t got, all = 0;
    int at = socket_for(path, &address);
    if (connect(at, (struct sockaddr *)&address, sizeof address) != 0)
        socket_failed(path);
    while ((got = read(at, piece, sizeof piece)) > 0) {
        all += got;
        fwrite(piece, 1, (size_t)got, stdout);
    }
    if (got < 0)
        socket_failed(path);
    if (all == 0)
        fprintf(stderr, "%s: no answer\n", path);
    return all == 0;
}

#endif
