// SPDX-License-Identifier: Apache-2.0
/* Halo exchange: heat on a plate by Jacobi's method. Each rank has some rows, with one row of each neighbour (the halo)
 * above and below. In every step it sends its outermost rows with notifications, computes the inner rows meanwhile, and
 * the outermost ones when the neighbours' rows are there. The field must have the same bits as that of one rank.
 *
 * The field before step k lies in segment k % 2. A neighbour overwrites a halo only after it has received a row that
 * this rank computed from that halo, so no rank asks whether it may write. */
#include <string.h>

#include "checks.h"

enum { columns = 96, rows_of_a_rank = 12, steps = 60 };
enum { above = 0, below = 1 }; /* sides, and the notifications of their halos */

static double initial(int row, int column) { return row % 7 * 0.25 + column % 5 + (row == 0 ? 100.0 : 0.0); }

/* Computes rows [first, last) of `to`; the outermost columns never change. */
static void update(double* to, const double* from, int first, int last) {
  int i, j;
  for (i = first; i < last; ++i)
    for (j = 1; j < columns - 1; ++j) {
      const double* const at = from + i * columns + j;
      to[i * columns + j] = 0.25 * (at[-columns] + at[columns] + at[-1] + at[1]);
    }
}

/* Sends an outermost row of the field of step `step` to the halo of the neighbour at `side`. */
static void send_row(int step, int side) {
  const gaspi_segment_id_t field = (gaspi_segment_id_t)(step % 2);
  const int from = side == above ? 1 : rows_of_a_rank, to = side == above ? rows_of_a_rank + 1 : 0;
  const gaspi_rank_t neighbour = (gaspi_rank_t)(side == above ? rank - 1 : rank + 1);
  CHECK(gaspi_write_notify(field, (gaspi_offset_t)from * columns * sizeof(double), neighbour, field,
                           (gaspi_offset_t)to * columns * sizeof(double), columns * sizeof(double),
                           (gaspi_notification_id_t)(1 - side), (gaspi_notification_t)step + 1, 0, GASPI_BLOCK));
}

/* Waits for the halo of the field of step `step` at `side`. */
static void await_row(int step, int side) {
  const gaspi_segment_id_t field = (gaspi_segment_id_t)(step % 2);
  gaspi_notification_id_t id = 0;
  gaspi_notification_t value = 0;
  CHECK(gaspi_notify_waitsome(field, (gaspi_notification_id_t)side, 1, &id, GASPI_BLOCK));
  CHECK(gaspi_notify_reset(field, id, &value));
  expect_value(step + 1, value, step, side);
}

/* The plate's first and last row never change: they are the halos of the first and the last rank. */
static void run(double* const fields[2]) {
  const int has[2] = {rank > 0, rank + 1 < ranks};
  int step, side;
  for (step = 0; step < steps; ++step) {
    double* const from = fields[step % 2];
    double* const to = fields[(step + 1) % 2];
    for (side = above; side <= below; ++side)
      if (has[side]) send_row(step, side);
    update(to, from, 2, rows_of_a_rank);
    for (side = above; side <= below; ++side)
      if (has[side]) await_row(step, side);
    update(to, from, 1, 2);
    update(to, from, rows_of_a_rank, rows_of_a_rank + 1);
    CHECK(gaspi_wait(0, GASPI_BLOCK)); /* the next step but one overwrites the rows that were sent */
  }
}

/* Computes the whole plate, and compares this rank's rows. */
static void verify(const double* mine) {
  const int all = ranks * rows_of_a_rank + 2;
  const size_t cells = (size_t)all * columns;
  double* const fields = malloc(2 * cells * sizeof(double));
  int i, j, step;
  if (fields == NULL) exit(EXIT_FAILURE);
  for (i = 0; i < all; ++i)
    for (j = 0; j < columns; ++j) fields[i * columns + j] = initial(i, j);
  memcpy(fields + cells, fields, cells * sizeof(double));
  for (step = 0; step < steps; ++step) update(fields + (step + 1) % 2 * cells, fields + step % 2 * cells, 1, all - 1);
  for (i = 1; i <= rows_of_a_rank; ++i)
    for (j = 0; j < columns; ++j)
      expect_value(fields[steps % 2 * cells + (size_t)(rank * rows_of_a_rank + i) * columns + (size_t)j],
                   mine[i * columns + j], rank * rows_of_a_rank + i, j);
  free(fields);
}

int main(void) {
  double* fields[2];
  int i, j;
  begin();
  for (i = 0; i < 2; ++i) fields[i] = make_segment((gaspi_segment_id_t)i, (rows_of_a_rank + 2) * columns);
  for (i = 0; i < rows_of_a_rank + 2; ++i)
    for (j = 0; j < columns; ++j)
      fields[0][i * columns + j] = fields[1][i * columns + j] = initial(rank * rows_of_a_rank + i, j);
  CHECK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK)); /* no rank fills a halo that has come */
  run(fields);
  verify(fields[steps % 2]);
  end();
  return EXIT_SUCCESS;
}
