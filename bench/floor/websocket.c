/*
 * The client of the table `websocket`: sends, checks each frame it receives, prints how it went as JSON.
 *
 * One thread and no runtime. In `echo`, each connection sends its next message when the last one came back.
 * In `room`, one more connection publishes, and so many messages are on their way to all others; each must
 * receive every message, in order.
 *
 * It prints `ready` when all connections are open, and begins after a line of standard input.
 *
 * Usage: websocket <port> <echo | room> <connections> <seconds> <messages on their way>
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client.h"

enum { PAYLOAD = 64, SENT = 6 + PAYLOAD, RECEIVED = 2 + PAYLOAD, CHUNK = 1 << 16 };
enum { EVENTS_MAX = 256, SAMPLES_MAX = 1 << 22 };
static const unsigned char MASK[4] = {0x12, 0x34, 0x56, 0x78};

struct line {
  int socket;
  size_t held; /* bytes of a frame that has not arrived whole */
  uint64_t next, sent_at;
  unsigned char frame[RECEIVED];
};

static struct line *lines, publisher;
static size_t lines_count, samples_count;
static uint64_t received, wrong, awaited, end;
static uint32_t *samples; /* ns */
static int is_echo;

/* The payload of a message: its number and the same letters after it. */
static void payload_of(uint64_t number, unsigned char *into) {
  memset(into, 'x', PAYLOAD);
  memcpy(into, &number, sizeof number);
}

static void send_message(struct line *line, uint64_t number) {
  unsigned char frame[SENT] = {0x82, 0x80 | PAYLOAD};
  memcpy(frame + 2, MASK, 4);
  payload_of(number, frame + 6);
  for (size_t at = 0; at < PAYLOAD; at += 1) frame[6 + at] ^= MASK[at % 4];
  if (send(line->socket, frame, SENT, MSG_NOSIGNAL) != SENT) fail("send");
}

static void ask(struct line *line, uint64_t now) {
  line->sent_at = now;
  awaited += 1;
  send_message(line, line->next);
}

static void read_whole(int socket, unsigned char *into, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    ssize_t got = recv(socket, into + done, bytes - done, 0);
    if (got <= 0) fail("recv");
    done += (size_t)got;
  }
}

/* Connects, upgrades, and, in a room, waits until the server has it in the room. */
static void open_line(struct line *line, int port, const char *path, int is_member) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int yes = 1;
  line->socket = socket(AF_INET, SOCK_STREAM, 0);
  if (line->socket < 0 || connect(line->socket, (struct sockaddr *)&address, sizeof address) != 0) fail("connect");
  setsockopt(line->socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  char text[512];
  int length = snprintf(text, sizeof text,
                        "GET %s HTTP/1.1\r\nHost: bench\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
                        path);
  if (send(line->socket, text, (size_t)length, MSG_NOSIGNAL) != length) fail("send");
  size_t got = 0;
  do {
    if (got == sizeof text - 1) fail("a head that is too long");
    read_whole(line->socket, (unsigned char *)text + got, 1);
    text[++got] = 0;
  } while (strstr(text, "\r\n\r\n") == NULL);
  if (strncmp(text, "HTTP/1.1 101 ", 13) != 0) fail(text);
  if (is_member) {
    unsigned char answer[RECEIVED];
    send_message(line, 0);
    read_whole(line->socket, answer, RECEIVED);
  }
}

/* One frame: that of the number which is next. */
static void take_frame(struct line *line, const unsigned char *frame, uint64_t now) {
  unsigned char expected[RECEIVED] = {0x82, PAYLOAD};
  payload_of(line->next, expected + 2);
  wrong += memcmp(frame, expected, RECEIVED) != 0;
  received += 1;
  awaited -= 1;
  line->next += 1;
  if (!is_echo) return;
  if (samples_count < SAMPLES_MAX) samples[samples_count++] = (uint32_t)(now - line->sent_at);
  if (now < end) ask(line, now);
}

static void take(struct line *line) {
  static unsigned char chunk[CHUNK];
  memcpy(chunk, line->frame, line->held);
  ssize_t got = recv(line->socket, chunk + line->held, CHUNK - line->held, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) fail("a connection ended");
  size_t there = line->held + (size_t)got, at = 0;
  uint64_t now = now_ns();
  for (; there - at >= RECEIVED; at += RECEIVED) take_frame(line, chunk + at, now);
  line->held = there - at;
  memcpy(line->frame, chunk + at, line->held);
}

/* Keeps so many messages on their way to the whole room. */
static void publish(uint64_t on_their_way) {
  for (; awaited <= (on_their_way - 1) * lines_count; awaited += lines_count) {
    send_message(&publisher, publisher.next);
    publisher.next += 1;
  }
}

int main(int count, char **words) {
  if (count != 6 || atoi(words[5]) < 1) {
    fprintf(stderr, "usage: websocket <port> <echo | room> <connections> <seconds> <messages on their way>\n");
    return 2;
  }
  int port = atoi(words[1]), epoll = epoll_create1(0);
  uint64_t on_their_way = (uint64_t)atoi(words[5]);
  is_echo = strcmp(words[2], "echo") == 0;
  lines_count = (size_t)atoi(words[3]);
  lines = calloc(lines_count, sizeof *lines);
  samples = malloc(SAMPLES_MAX * sizeof *samples);
  if (lines == NULL || samples == NULL || lines_count == 0 || epoll < 0) fail("connections");
  for (size_t at = 0; at < lines_count; at += 1) {
    struct epoll_event wanted = {.events = EPOLLIN, .data.ptr = &lines[at]};
    open_line(&lines[at], port, is_echo ? "/echo" : "/room", !is_echo);
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, lines[at].socket, &wanted) != 0) fail("epoll_ctl");
  }
  if (!is_echo) open_line(&publisher, port, "/publish", 0);
  printf("ready\n");
  fflush(stdout);
  getchar(); /* the bench has read the CPU time of the server */
  uint64_t started = now_ns(), now = started;
  end = started + (uint64_t)(atof(words[4]) * 1e9);
  for (size_t at = 0; is_echo && at < lines_count; at += 1) ask(&lines[at], started);
  for (; now < end || (awaited > 0 && now < end + LATE); now = now_ns()) {
    struct epoll_event seen[EVENTS_MAX];
    if (!is_echo && now < end) publish(on_their_way);
    int ready = epoll_wait(epoll, seen, EVENTS_MAX, 100);
    for (int at = 0; at < ready; at += 1) take(seen[at].data.ptr);
  }
  qsort(samples, samples_count, sizeof *samples, by_size);
  printf("{\"messages\":%llu,\"wrong\":%llu,", (unsigned long long)received, (unsigned long long)(wrong + awaited));
  printf("\"seconds\":%.6f,\"us\":{\"p50\":%.1f,\"p99\":%.1f}}\n", (double)(now - started) / 1e9,
         quantile_us(samples, samples_count, 0.5), quantile_us(samples, samples_count, 0.99));
  return 0;
}
