/*
 * Clients with tiny windows: their kernels take a few hundred bytes, and they read sixteen at a time.
 *
 * Node cannot set a socket's receive buffer, so these are in C. Each asks for a path and reads slowly for a
 * while, then not at all. Prints how many bytes were read and how many connections were closed meanwhile, and
 * stays until its input ends.
 *
 * Usage: narrow PORT COUNT PATH READ_MS NAP_MS
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char **argv) {
    if (argc != 6) return 2;
    int count = atoi(argv[2]), one = 1, closed = 0;
    long bytes = 0;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(argv[1]))};
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    int *fds = calloc((size_t)count, sizeof *fds);
    for (int at = 0; at < count; at++) {
        fds[at] = socket(AF_INET, SOCK_STREAM, 0);
        setsockopt(fds[at], SOL_SOCKET, SO_RCVBUF, &one, sizeof one);
        setsockopt(fds[at], IPPROTO_TCP, TCP_WINDOW_CLAMP, &one, sizeof one);
        if (connect(fds[at], (struct sockaddr *)&to, sizeof to) != 0) return 1;
        dprintf(fds[at], "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", argv[3]);
    }
    char piece[16];
    for (int left = atoi(argv[4]); left > 0; left -= atoi(argv[5])) {
        for (int at = 0; at < count; at++) {
            if (fds[at] < 0) continue;
            ssize_t got = recv(fds[at], piece, sizeof piece, MSG_DONTWAIT);
            if (got > 0) bytes += got;
            else if (got == 0 || errno != EAGAIN) {
                close(fds[at]);
                fds[at] = -1;
                closed++;
            }
        }
        usleep((useconds_t)atoi(argv[5]) * 1000);
    }
    printf("%ld %d\n", bytes, closed);
    fflush(stdout);
    while (read(0, piece, sizeof piece) > 0) {}
    return 0;
}
