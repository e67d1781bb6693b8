// SPDX-License-Identifier: Apache-2.0
/* What the programs of this folder share: the calling rank, and checks that end the program with a text. */
#ifndef EXAMPLES_GASPI_CHECKS_H
#define EXAMPLES_GASPI_CHECKS_H

#include <GASPI.h>
#include <stdio.h>
#include <stdlib.h>

static gaspi_rank_t rank, ranks;

/* A rank that ends with an error is reported by what has started it. */
static void check(gaspi_return_t result, const char* call) {
  if (result == GASPI_SUCCESS) return;
  fprintf(stderr, "rank %d: %s: result %d\n", (int)rank, call, (int)result);
  exit(EXIT_FAILURE);
}
#define CHECK(call) check(call, #call)

static void expect_value(double expected, double observed, int row, int column) {
  if (expected == observed) return;
  fprintf(stderr, "rank %d: row %d, column %d: expected %.17g, observed %.17g\n", (int)rank, row, column, expected,
          observed);
  exit(EXIT_FAILURE);
}

static void begin(void) {
  CHECK(gaspi_proc_init(GASPI_BLOCK));
  CHECK(gaspi_proc_rank(&rank));
  CHECK(gaspi_proc_num(&ranks));
}

/* All ranks have verified their values; no rank's memory ends while another rank may write to it. */
static void end(void) {
  CHECK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
  CHECK(gaspi_proc_term(GASPI_BLOCK));
  printf("rank %d of %d: all values were right\n", (int)rank, (int)ranks);
}

/* A zeroed segment of all ranks. Returns this rank's part. */
static double* make_segment(gaspi_segment_id_t id, size_t doubles) {
  gaspi_pointer_t memory = NULL;
  CHECK(gaspi_segment_create(id, doubles * sizeof(double), GASPI_GROUP_ALL, GASPI_BLOCK, GASPI_MEM_INITIALIZED));
  CHECK(gaspi_segment_ptr(id, &memory));
  return (double*)memory;
}

#endif
