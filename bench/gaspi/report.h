// SPDX-License-Identifier: Apache-2.0
/// @file
/// Times of the programs of `beeline bench gaspi`, printed as results like those of beeline-bench. C99.
#ifndef BEELINE_BENCH_GASPI_REPORT_H
#define BEELINE_BENCH_GASPI_REPORT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { samples_of_a_result = 20 };

/// What a row of results says about its measurement.
struct row {
  const char* operation;
  const char* library;  ///< the first part of the method's name
  const char* call;     ///< the second part
  const char* memory;   ///< host or gpu
  size_t bytes;
  int ranks;
};

static inline double now_us(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return 1e6 * (double)time.tv_sec + 1e-3 * (double)time.tv_nsec;
}

/// Operations of a batch of about 3 ms, if one takes `time_us`; at least 20, so that a delay does not make the sample,
/// but no more than fit into 60 ms: batches of large transfers would take minutes.
static inline int operations_in_batch(double time_us) {
  const double time = time_us > 0.01 ? time_us : 0.01, most = time < 1 ? 20000 : 60000 / time;
  const double fit = 3000 / time < 20 ? 20 : 3000 / time, count = fit < most ? fit : most;
  return count < 1 ? 1 : (int)count;
}

static int compare_samples(const void* left, const void* right) {
  const double a = *(const double*)left, b = *(const double*)right;
  return a < b ? -1 : a > b;
}

/// The median of values [samples_of_a_result].
static inline double median_of(const double* values) {
  double sorted[samples_of_a_result];
  memcpy(sorted, values, sizeof sorted);
  qsort(sorted, samples_of_a_result, sizeof *sorted, compare_samples);
  return 0.5 * (sorted[samples_of_a_result / 2 - 1] + sorted[samples_of_a_result / 2]);
}

/// Prints a result. `verified`: 1, 0, or -1 if the operation moves no data.
static inline void print_row(const struct row* row, const char* unit, const double* samples, int operations,
                             int verified) {
  const double middle = median_of(samples);
  double deviations[samples_of_a_result];
  int i;
  for (i = 0; i < samples_of_a_result; ++i)
    deviations[i] = samples[i] < middle ? middle - samples[i] : samples[i] - middle;
  printf(
      "{\"event\": \"result\", \"schema_version\": 1, \"operation\": \"%s\", \"method\": \"%s/%s\", \"bytes\": %lu, "
      "\"ranks\": %d, \"available\": true, \"reason\": null, \"unit\": \"%s\", \"median\": %.6g, "
      "\"relative_deviation\": %.3g, \"iterations\": %d, \"verified\": %s, \"samples\": [",
      row->operation, row->library, row->call, (unsigned long)row->bytes, row->ranks, unit, middle,
      middle > 0 ? median_of(deviations) / middle : 0, operations,
      verified < 0   ? "null"
      : verified > 0 ? "true"
                     : "false");
  for (i = 0; i < samples_of_a_result; ++i) printf("%s%.6g", i > 0 ? ", " : "", samples[i]);
  printf("], \"settings\": {\"memory\": \"%s\"}}\n", row->memory);
  fflush(stdout);
}

/// The sizes in a list such as 8,64,4096; returns their number, at most `most`.
static inline int sizes_of(const char* text, size_t* sizes, int most) {
  int count = 0;
  while (*text != '\0' && count < most) {
    char* end;
    sizes[count++] = (size_t)strtoull(text, &end, 10);
    text = *end == ',' ? end + 1 : end;
  }
  return count;
}

#endif
