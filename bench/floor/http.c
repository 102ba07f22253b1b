/*
 * The floor of an HTTP server on one core: epoll, read, find the requests, write the answers, and nothing else.
 *
 * It believes every byte: no limits, no checks, no bodies, one thread. What a server does on this kernel cannot
 * cost less without asking the kernel less often. Its answers have the bytes of Corespun's, date included.
 * Usage: http <port>. GET / says hello, /user/<id> makes JSON, /constant copies a ready answer.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { EVENTS_MAX = 256, IN_BYTES = 32 * 1024, OUT_BYTES = 256 * 1024, BODY_BYTES = 512 };

static char date_line[64];
static time_t date_second;
static char in[IN_BYTES], out[OUT_BYTES];

static void fail(const char *what) {
  perror(what);
  exit(1);
}

static void set_date(void) {
  struct timespec now;
  struct tm parts;
  clock_gettime(CLOCK_REALTIME_COARSE, &now);
  if (now.tv_sec == date_second) return;
  date_second = now.tv_sec;
  gmtime_r(&date_second, &parts);
  strftime(date_line, sizeof date_line, "date: %a, %d %b %Y %H:%M:%S GMT\r\n", &parts);
}

static char *put(char *to, const char *text, size_t length) {
  memcpy(to, text, length);
  return to + length;
}

#define PUT(to, text) put(to, text, sizeof(text) - 1)

static char *put_number(char *to, size_t number) {
  char digits[20];
  int at = sizeof digits;
  do {
    digits[--at] = (char)('0' + number % 10);
    number /= 10;
  } while (number != 0);
  return put(to, digits + at, sizeof digits - (size_t)at);
}

static char *put_answer(char *to, const char *type, size_t type_length, const char *body, size_t length) {
  to = PUT(to, "HTTP/1.1 200 OK\r\ncontent-type: ");
  to = put(to, type, type_length);
  to = PUT(to, "\r\n");
  to = put(to, date_line, 37);
  to = PUT(to, "content-length: ");
  to = put_number(to, length);
  to = PUT(to, "\r\n\r\n");
  return put(to, body, length);
}

static char *put_hello(char *to) {
  static const char type[] = "text/plain;charset=UTF-8";
  return put_answer(to, type, sizeof type - 1, "Hello, World!", 13);
}

/* {"id":"7","name":"user 7","active":true} */
static char *put_user(char *to, const char *id, size_t length) {
  static const char type[] = "application/json";
  char body[BODY_BYTES], *end = body;
  if (length > 200) length = 200;
  end = PUT(end, "{\"id\":\"");
  end = put(end, id, length);
  end = PUT(end, "\",\"name\":\"user ");
  end = put(end, id, length);
  end = PUT(end, "\",\"active\":true}");
  return put_answer(to, type, sizeof type - 1, body, (size_t)(end - body));
}

/* Answer the requests of `length` bytes; all are taken to be whole. */
static char *answer(const char *from, size_t length, char *to) {
  const char *end = from + length;
  while (from < end) {
    const char *stop = memmem(from, (size_t)(end - from), "\r\n\r\n", 4);
    if (stop == NULL || to - out > OUT_BYTES - 1024) break;
    const char *path = memchr(from, ' ', (size_t)(stop - from));
    if (path != NULL && memcmp(path + 1, "/user/", 6) == 0) {
      const char *id = path + 7, *id_end = memchr(id, ' ', (size_t)(stop - id));
      to = put_user(to, id, (size_t)((id_end == NULL ? stop : id_end) - id));
    } else {
      to = put_hello(to);
    }
    from = stop + 4;
  }
  return to;
}

static int listen_at(const char *port) {
  int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (fd < 0) fail("socket");
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0) fail("bind");
  if (listen(fd, 511) != 0) fail("listen");
  return fd;
}

static void serve(int fd) {
  ssize_t length = read(fd, in, sizeof in);
  if (length <= 0) {
    if (length == 0 || errno != EAGAIN) close(fd);
    return;
  }
  char *end = answer(in, (size_t)length, out);
  if (write(fd, out, (size_t)(end - out)) != end - out) close(fd);
}

int main(int count, char **words) {
  struct epoll_event events[EVENTS_MAX], wanted = {.events = EPOLLIN};
  int listener = listen_at(count > 1 ? words[1] : "8080"), epoll = epoll_create1(0);
  if (epoll < 0) fail("epoll_create1");
  wanted.data.fd = listener;
  epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &wanted);
  for (;;) {
    int ready = epoll_wait(epoll, events, EVENTS_MAX, -1);
    set_date();
    for (int index = 0; index < ready; index += 1) {
      int fd = events[index].data.fd;
      if (fd != listener) {
        serve(fd);
        continue;
      }
      for (;;) {
        int client = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
        if (client < 0) break;
        wanted.data.fd = client;
        wanted.events = EPOLLIN | EPOLLET;
        epoll_ctl(epoll, EPOLL_CTL_ADD, client, &wanted);
      }
    }
  }
}
