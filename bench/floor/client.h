/* What the clients of the bench that are written in C have in common. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const uint64_t SECOND = 1000000000, LATE = 10 * SECOND;

static void fail(const char *what) {
  perror(what);
  exit(1);
}

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

static int by_size(const void *left, const void *right) {
  uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
  return (a > b) - (a < b);
}

/* The quantile of samples in ns that are sorted, in µs. */
static double quantile_us(const uint32_t *samples, size_t count, double share) {
  size_t at = (size_t)((double)count * share);
  return count == 0 ? 0 : samples[at < count ? at : count - 1] / 1e3;
}
