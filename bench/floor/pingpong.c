/*
 * The floor of a call to another thread: two threads that wake each other in turn by eventfd and wait by epoll.
 *
 * What a library does with a sleeping thread on this kernel cannot take less than this without spinning.
 * Usage: pingpong <milliseconds>. Prints one line of JSON: p50Us, p99Us, cpuUs per round trip, calls.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { SAMPLES_MAX = 1 << 22, WARM_UP = 200 };

/* One direction: an eventfd and the epoll that waits for it. */
struct way {
  int event;
  int epoll;
};

static struct way there, back;
static uint64_t stop_at = UINT64_MAX;

static void fail(const char *what) {
  perror(what);
  exit(1);
}

static struct way way_new(void) {
  struct way way = {eventfd(0, EFD_NONBLOCK), epoll_create1(0)};
  struct epoll_event wanted = {.events = EPOLLIN};
  if (way.event < 0 || way.epoll < 0) fail("eventfd or epoll");
  if (epoll_ctl(way.epoll, EPOLL_CTL_ADD, way.event, &wanted) != 0) fail("epoll_ctl");
  return way;
}

static void wake(const struct way *way) {
  uint64_t one = 1;
  if (write(way->event, &one, sizeof one) != sizeof one) fail("write");
}

static void await(const struct way *way) {
  struct epoll_event seen;
  uint64_t count;
  if (epoll_wait(way->epoll, &seen, 1, -1) < 0) fail("epoll_wait");
  if (read(way->event, &count, sizeof count) != sizeof count) fail("read");
}

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static double cpu_us(void) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e6 + (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

/* The other thread: answers every wake-up until the main one says stop. */
static void *answer(void *unused) {
  (void)unused;
  do {
    await(&there);
    wake(&back);
  } while (__atomic_load_n(&stop_at, __ATOMIC_ACQUIRE) != 0);
  return NULL;
}

static int by_size(const void *left, const void *right) {
  uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
  return (a > b) - (a < b);
}

int main(int count, char **words) {
  uint64_t slice_ns = (count > 1 ? strtoull(words[1], NULL, 10) : 200) * 1000000u;
  uint32_t *samples = malloc(sizeof(uint32_t) * SAMPLES_MAX);
  pthread_t other;
  size_t calls = 0;
  if (samples == NULL) fail("malloc");
  there = way_new();
  back = way_new();
  if (pthread_create(&other, NULL, answer, NULL) != 0) fail("pthread_create");
  for (int turn = 0; turn < WARM_UP; turn += 1) {
    wake(&there);
    await(&back);
  }
  double cpu_before = cpu_us();
  uint64_t start = now_ns();
  for (uint64_t before = start; before - start < slice_ns && calls < SAMPLES_MAX; calls += 1) {
    wake(&there);
    await(&back);
    uint64_t after = now_ns();
    samples[calls] = (uint32_t)(after - before);
    before = after;
  }
  double cpu = (cpu_us() - cpu_before) / (double)calls;
  __atomic_store_n(&stop_at, 0, __ATOMIC_RELEASE);
  wake(&there); /* the other thread answers once more, sees the stop and ends */
  pthread_join(other, NULL);
  qsort(samples, calls, sizeof *samples, by_size);
  printf("{\"p50Us\":%.3f,\"p99Us\":%.3f,\"cpuUs\":%.3f,\"calls\":%zu}\n", samples[calls / 2] / 1000.0,
         samples[calls * 99 / 100] / 1000.0, cpu, calls);
  free(samples);
  return 0;
}
