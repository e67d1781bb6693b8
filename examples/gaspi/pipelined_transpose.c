// SPDX-License-Identifier: Apache-2.0
/* Pipelined transpose: a square matrix whose rows are distributed over the ranks is transposed. Each pair of ranks
 * exchanges a block, in tiles: a tile is packed, transposed, and sent with a notification of its own while the next one
 * is packed; the receiver unpacks tiles in the order in which they come. So packing, transfers and unpacking overlap.
 */
#include <string.h>

#include "checks.h"

enum { rows_of_a_rank = 48, tile_rows = 8, tiles = rows_of_a_rank / tile_rows, rounds = 3 };
enum { tile_doubles = tile_rows * rows_of_a_rank }; /* [rows of the receiver][tile_rows of the sender] */
enum { outbox = 0, inbox = 1 };                     /* segments, [ranks][tiles][tile_doubles] */
enum { free_again = 30000 };                        /* notifications from here on: rank r has unpacked my tiles */

static double value(int round, int row, int column) { return 1e6 * round + 1000.0 * row + column; }

static gaspi_offset_t tile_offset(int of_rank, int tile) {
  return ((gaspi_offset_t)of_rank * tiles + (gaspi_offset_t)tile) * tile_doubles * sizeof(double);
}

/* Packs a tile of the block for `peer`, transposed: its rows are columns of `matrix`. */
static void pack(double* tile, const double* matrix, int peer, int first_row) {
  const int width = ranks * rows_of_a_rank;
  int i, j;
  for (i = 0; i < rows_of_a_rank; ++i)
    for (j = 0; j < tile_rows; ++j)
      tile[i * tile_rows + j] = matrix[(first_row + j) * width + peer * rows_of_a_rank + i];
}

/* Copies a tile of `peer` to its place in the rows of `transposed`. */
static void unpack(double* transposed, const double* tile, int peer, int first_row) {
  const int width = ranks * rows_of_a_rank;
  int i;
  for (i = 0; i < rows_of_a_rank; ++i)
    memcpy(transposed + i * width + peer * rows_of_a_rank + first_row, tile + i * tile_rows,
           tile_rows * sizeof(double));
}

/* Each rank begins with the rank behind it, so that not all send to the same one. */
static void send_tiles(double* out, const double* matrix) {
  int distance, tile;
  for (tile = 0; tile < tiles; ++tile)
    for (distance = 1; distance <= ranks; ++distance) {
      const int peer = (rank + distance) % ranks;
      const gaspi_offset_t from = tile_offset(peer, tile);
      pack(out + from / sizeof(double), matrix, peer, tile * tile_rows);
      CHECK(gaspi_write_notify(outbox, from, (gaspi_rank_t)peer, inbox, tile_offset(rank, tile),
                               tile_doubles * sizeof(double), (gaspi_notification_id_t)(rank * tiles + tile), 1,
                               (gaspi_queue_id_t)(peer % 2), GASPI_BLOCK));
    }
}

static void receive_tiles(double* transposed, const double* in) {
  int received;
  for (received = 0; received < ranks * tiles; ++received) {
    gaspi_notification_id_t id = 0;
    gaspi_notification_t announced = 0;
    CHECK(gaspi_notify_waitsome(inbox, 0, (gaspi_number_t)(ranks * tiles), &id, GASPI_BLOCK));
    CHECK(gaspi_notify_reset(inbox, id, &announced));
    expect_value(1, announced, id, 0);
    unpack(transposed, in + (size_t)id * tile_doubles, id / tiles, id % tiles * tile_rows);
  }
}

/* Tells every rank that its tiles may be overwritten, and waits for the same of all. */
static void release_inboxes(void) {
  int peer;
  for (peer = 0; peer < ranks; ++peer)
    CHECK(gaspi_notify(inbox, (gaspi_rank_t)peer, (gaspi_notification_id_t)(free_again + rank), 1,
                       (gaspi_queue_id_t)(peer % 2), GASPI_BLOCK));
  for (peer = 0; peer < ranks; ++peer) {
    gaspi_notification_id_t id = 0;
    gaspi_notification_t announced = 0;
    CHECK(gaspi_notify_waitsome(inbox, (gaspi_notification_id_t)(free_again + peer), 1, &id, GASPI_BLOCK));
    CHECK(gaspi_notify_reset(inbox, id, &announced));
  }
  CHECK(gaspi_wait(0, GASPI_BLOCK)); /* the outbox may be packed again */
  CHECK(gaspi_wait(1, GASPI_BLOCK));
}

int main(void) {
  int round, i, j, width;
  double *out, *in, *matrix, *transposed;
  begin();
  width = ranks * rows_of_a_rank;
  out = make_segment(outbox, (size_t)ranks * tiles * tile_doubles);
  in = make_segment(inbox, (size_t)ranks * tiles * tile_doubles);
  matrix = malloc((size_t)rows_of_a_rank * (size_t)width * sizeof(double));
  transposed = malloc((size_t)rows_of_a_rank * (size_t)width * sizeof(double));
  if (matrix == NULL || transposed == NULL) return EXIT_FAILURE;
  for (round = 0; round < rounds; ++round) {
    for (i = 0; i < rows_of_a_rank; ++i)
      for (j = 0; j < width; ++j) matrix[i * width + j] = value(round, rank * rows_of_a_rank + i, j);
    send_tiles(out, matrix);
    receive_tiles(transposed, in);
    for (i = 0; i < rows_of_a_rank; ++i)
      for (j = 0; j < width; ++j)
        expect_value(value(round, j, rank * rows_of_a_rank + i), transposed[i * width + j], i, j);
    release_inboxes();
  }
  free(matrix);
  free(transposed);
  end();
  return EXIT_SUCCESS;
}
