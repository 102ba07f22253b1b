/*
 * The client of the table `service`: asks, checks each answer, tells how it went as one line of JSON.
 *
 * One thread and no runtime, for the client stands on the cores that it measures. Paced, a request is due
 * whether or not those before it were answered, and its latency counts from when it was due: neither a server
 * that stalls nor a client that does shortens it. Unpaced, a connection asks again as soon as it was answered.
 *
 * Usage: client <port> <connections> <seconds> <per second, 0: unpaced> <warm-up seconds> (<path> <answer>)...
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "client.h"

enum { SAMPLES_MAX = 1 << 22, ANSWER_BYTES_MAX = 4096, REQUEST_BYTES_MAX = 512, EVENTS_MAX = 256 };

/* One connection: at most one request on its way; others that are due wait for it, and their time runs. */
struct line {
  int socket, is_busy;
  size_t waiting; /* due and not sent */
  size_t index;   /* of the request on its way, or of the next one */
  uint64_t asked_at;
  size_t length;
  char answer[ANSWER_BYTES_MAX + 1];
};

static struct line *lines;
static size_t lines_count, open_count;
static char **pairs;
static size_t pairs_count;
static uint64_t started, warm, end, gap;
static size_t asked, answered, wrong;
static uint32_t *latencies; /* ns */
static size_t latencies_count;

static void give_up(struct line *line) {
  close(line->socket);
  line->socket = -1;
  open_count -= 1;
  wrong += 1;
}

static void send_next(struct line *line) {
  char request[REQUEST_BYTES_MAX];
  const char *path = pairs[2 * (line->index % pairs_count)];
  int bytes = snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: bench\r\n\r\n", path);
  line->is_busy = 1;
  line->length = 0;
  if (gap > 0) line->asked_at = started + line->index * gap;
  else line->asked_at = now_ns();
  if (line->socket < 0) return;
  if (bytes >= REQUEST_BYTES_MAX || send(line->socket, request, (size_t)bytes, MSG_NOSIGNAL) != bytes) give_up(line);
}

/* The request with this index is due. */
static void ask(size_t index) {
  struct line *line = &lines[index % lines_count];
  asked += 1;
  if (line->is_busy) line->waiting += 1;
  else send_next(line);
}

static void record(uint64_t from, uint64_t to) {
  uint64_t took = to - from;
  if (to < warm || latencies_count == SAMPLES_MAX) return;
  latencies[latencies_count++] = took > UINT32_MAX ? UINT32_MAX : (uint32_t)took;
}

/* Whether the whole answer is there, and whether it is the known one. */
static int is_whole(const struct line *line, int *is_right) {
  const char *head_end = strstr(line->answer, "\r\n\r\n");
  const char *field = strcasestr(line->answer, "\r\ncontent-length:");
  if (head_end == NULL) return 0;
  size_t length = field == NULL || field > head_end ? 0 : strtoul(field + strlen("\r\ncontent-length:"), NULL, 10);
  const char *body = head_end + 4;
  size_t there = line->length - (size_t)(body - line->answer);
  if (there < length) return 0;
  const char *wanted = pairs[2 * (line->index % pairs_count) + 1];
  *is_right = strncmp(line->answer, "HTTP/1.1 200 ", 13) == 0 && there == length && length == strlen(wanted) &&
              memcmp(body, wanted, length) == 0;
  return 1;
}

static void take(struct line *line) {
  ssize_t got = recv(line->socket, line->answer + line->length, ANSWER_BYTES_MAX - line->length, 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0 || !line->is_busy) return give_up(line);
  line->length += (size_t)got;
  line->answer[line->length] = 0;
  int is_right = 0;
  if (!is_whole(line, &is_right)) {
    if (line->length == ANSWER_BYTES_MAX) give_up(line);
    return;
  }
  uint64_t now = now_ns();
  answered += 1;
  wrong += !is_right;
  record(line->asked_at, now);
  line->is_busy = 0;
  line->index += lines_count;
  if (line->waiting > 0) {
    line->waiting -= 1;
    send_next(line);
  } else if (gap == 0 && now < end) ask(line->index);
}

static void open_lines(const char *port, int epoll) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  for (size_t at = 0; at < lines_count; at += 1) {
    struct line *line = &lines[at];
    struct epoll_event wanted = {.events = EPOLLIN, .data.ptr = line};
    int yes = 1;
    line->index = at;
    open_count += 1;
    line->socket = socket(AF_INET, SOCK_STREAM, 0);
    if (line->socket < 0 || connect(line->socket, (struct sockaddr *)&address, sizeof address) != 0) fail("connect");
    setsockopt(line->socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, line->socket, &wanted) != 0) fail("epoll_ctl");
  }
}

static void wake_at(int timer, uint64_t at) {
  struct itimerspec when = {.it_value = {(time_t)(at / SECOND), (long)(at % SECOND)}};
  if (timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, NULL) != 0) fail("timerfd_settime");
}

/* Until all that was due is answered, or nobody is left who could, or it is too late. */
static void run(int epoll, int timer, size_t due_count) {
  struct epoll_event seen[EVENTS_MAX];
  size_t next = 0;
  for (;;) {
    uint64_t now = now_ns();
    if (gap > 0) {
      for (; next < due_count && started + next * gap <= now; next += 1) ask(next);
      wake_at(timer, next < due_count ? started + next * gap : end + LATE);
    }
    int is_all_asked = gap > 0 ? next == due_count : now >= end;
    if ((is_all_asked && answered >= asked) || open_count == 0 || now > end + LATE) return;
    int count = epoll_wait(epoll, seen, EVENTS_MAX, 100);
    if (count < 0 && errno != EINTR) fail("epoll_wait");
    for (int at = 0; at < count; at += 1) {
      struct line *line = seen[at].data.ptr;
      uint64_t expirations;
      if (line != NULL) take(line);
      else if (read(timer, &expirations, sizeof expirations) < 0 && errno != EAGAIN) fail("read");
    }
  }
}

int main(int count, char **words) {
  if (count < 8 || count % 2 != 0) {
    fprintf(stderr, "usage: client <port> <connections> <s> <per second> <warm-up s> (<path> <answer>)...\n");
    return 2;
  }
  double seconds = atof(words[3]), per_second = atof(words[4]), warm_seconds = atof(words[5]);
  lines_count = (size_t)atoi(words[2]);
  lines = calloc(lines_count, sizeof *lines);
  latencies = malloc(SAMPLES_MAX * sizeof *latencies);
  pairs = &words[6];
  pairs_count = (size_t)(count - 6) / 2;
  int epoll = epoll_create1(0), timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
  struct epoll_event wanted = {.events = EPOLLIN, .data.ptr = NULL};
  if (lines == NULL || latencies == NULL || lines_count == 0) fail("connections");
  if (epoll < 0 || timer < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, timer, &wanted) != 0) fail("epoll or timerfd");
  open_lines(words[1], epoll);
  started = now_ns();
  warm = started + (uint64_t)(warm_seconds * 1e9);
  end = started + (uint64_t)(seconds * 1e9);
  gap = per_second > 0 ? (uint64_t)(1e9 / per_second) : 0;
  if (gap == 0)
    for (size_t at = 0; at < lines_count; at += 1) ask(at);
  run(epoll, timer, gap > 0 ? (size_t)(per_second * seconds) : 0);
  double took = (double)(now_ns() - started) / 1e9;
  qsort(latencies, latencies_count, sizeof *latencies, by_size);
  printf("{\"answers\":%zu,\"wrong\":%zu,\"seconds\":%.6f,\"samples\":%zu,", answered,
         wrong + (asked > answered ? asked - answered : 0), took, latencies_count);
  double us[4], shares[4] = {0.5, 0.99, 0.999, 1};
  for (int at = 0; at < 4; at += 1) us[at] = quantile_us(latencies, latencies_count, shares[at]);
  printf("\"us\":{\"p50\":%.1f,\"p99\":%.1f,\"p99.9\":%.1f,\"max\":%.1f}}\n", us[0], us[1], us[2], us[3]);
  return 0;
}
