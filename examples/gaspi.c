// SPDX-License-Identifier: Apache-2.0
/* A program in C99 that uses nothing but the GASPI standard (17.1): it compiles and runs unchanged with any
 * implementation of it. Each rank passes a vector around a ring, draws numbers from a counter on rank 0, and the ranks
 * add up what they have. */
#include <GASPI.h>
#include <stdio.h>
#include <stdlib.h>

enum { count = 1000, rounds = 10 };   /* doubles of a vector; steps around the ring */
enum { inbox = 0, outbox = 1 };       /* segments */
enum { arrived = 0, free_again = 1 }; /* notifications of the inbox */

static gaspi_rank_t rank, ranks;

/* Ends the program if a call failed: gaspi_run and mpirun then report this rank. */
static void check(gaspi_return_t result, const char* call) {
  if (result == GASPI_SUCCESS) return;
  fprintf(stderr, "rank %d: %s: result %d\n", (int)rank, call, (int)result);
  exit(EXIT_FAILURE);
}
#define CHECK(call) check(call, #call)

static void expect(int is_right, const char* what) {
  if (is_right) return;
  fprintf(stderr, "rank %d: wrong: %s\n", (int)rank, what);
  exit(EXIT_FAILURE);
}
#define EXPECT(what) expect(what, #what)

/* Waits for one notification of the inbox, resets it, and returns its value. */
static gaspi_notification_t wait_for(gaspi_notification_id_t id) {
  gaspi_notification_id_t found = 0;
  gaspi_notification_t value = 0;
  CHECK(gaspi_notify_waitsome(inbox, id, 1, &found, GASPI_BLOCK));
  CHECK(gaspi_notify_reset(inbox, found, &value));
  return value;
}

/* Passes a vector on `rounds` times. The next rank says when its inbox may be written again. */
static void pass_around(void) {
  const gaspi_rank_t next = (gaspi_rank_t)((rank + 1) % ranks), previous = (gaspi_rank_t)((rank + ranks - 1) % ranks);
  gaspi_pointer_t in = NULL, out = NULL;
  int round, i;
  CHECK(gaspi_segment_ptr(inbox, &in));
  CHECK(gaspi_segment_ptr(outbox, &out));
  for (i = 0; i < count; ++i) ((double*)out)[i] = 1000.0 * rank + i;
  for (round = 1; round <= rounds; ++round) {
    const int origin = (rank + rounds * ranks - round) % ranks; /* whose vector comes in this round */
    if (round > 1) wait_for(free_again);
    CHECK(gaspi_write_notify(outbox, 0, next, inbox, 0, count * sizeof(double), arrived, (gaspi_notification_t)round, 0,
                             GASPI_BLOCK));
    EXPECT(wait_for(arrived) == (gaspi_notification_t)round);
    CHECK(gaspi_wait(0, GASPI_BLOCK)); /* the outbox may be written again */
    for (i = 0; i < count; ++i) {
      ((double*)out)[i] = ((const double*)in)[i];
      EXPECT(((const double*)in)[i] == 1000.0 * origin + i);
    }
    if (round < rounds) CHECK(gaspi_notify(inbox, previous, free_again, 1, 0, GASPI_BLOCK));
  }
  CHECK(gaspi_wait(0, GASPI_BLOCK));
}

/* All ranks draw numbers from a counter in rank 0's outbox; together they draw each number once. */
static void draw_numbers(void) {
  gaspi_pointer_t out = NULL;
  gaspi_atomic_value_t drawn = 0;
  gaspi_ulong sum = 0, total = 0;
  int i;
  CHECK(gaspi_segment_ptr(outbox, &out));
  *(gaspi_atomic_value_t*)out = 0;
  CHECK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
  for (i = 0; i < rounds; ++i) {
    CHECK(gaspi_atomic_fetch_add(outbox, 0, 0, 1, &drawn, GASPI_BLOCK));
    sum += drawn;
  }
  CHECK(gaspi_allreduce(&sum, &total, 1, GASPI_OP_SUM, GASPI_TYPE_ULONG, GASPI_GROUP_ALL, GASPI_BLOCK));
  EXPECT(total == (gaspi_ulong)rounds * ranks * (rounds * ranks - 1) / 2);
}

/* Rank 0 receives a message of every other rank, in whatever order they come. */
static void report_to_rank_0(void) {
  gaspi_pointer_t out = NULL, in = NULL;
  int sum = 0, i;
  CHECK(gaspi_segment_ptr(outbox, &out));
  CHECK(gaspi_segment_ptr(inbox, &in));
  if (rank > 0) {
    *(int*)out = rank;
    CHECK(gaspi_passive_send(outbox, 0, 0, sizeof(int), GASPI_BLOCK));
    return;
  }
  for (i = 1; i < ranks; ++i) {
    gaspi_rank_t sender = 0;
    CHECK(gaspi_passive_receive(inbox, 0, &sender, sizeof(int), GASPI_BLOCK));
    EXPECT(*(const int*)in == sender);
    sum += sender;
  }
  EXPECT(sum == ranks * (ranks - 1) / 2);
}

/* A group of the ranks below `size`: the others do not take part. */
static void add_up_in_a_group(gaspi_rank_t size) {
  gaspi_group_t group = 0;
  double mine = rank + 1.0, largest = 0;
  gaspi_rank_t member;
  if (rank >= size) return;
  CHECK(gaspi_group_create(&group));
  for (member = 0; member < size; ++member) CHECK(gaspi_group_add(group, member));
  CHECK(gaspi_group_commit(group, GASPI_BLOCK));
  CHECK(gaspi_allreduce(&mine, &largest, 1, GASPI_OP_MAX, GASPI_TYPE_DOUBLE, group, GASPI_BLOCK));
  EXPECT(largest == size);
  CHECK(gaspi_group_delete(group));
}

int main(void) {
  CHECK(gaspi_proc_init(GASPI_BLOCK));
  CHECK(gaspi_proc_rank(&rank));
  CHECK(gaspi_proc_num(&ranks));
  CHECK(gaspi_segment_create(inbox, count * sizeof(double), GASPI_GROUP_ALL, GASPI_BLOCK, GASPI_MEM_INITIALIZED));
  CHECK(gaspi_segment_create(outbox, count * sizeof(double), GASPI_GROUP_ALL, GASPI_BLOCK, GASPI_MEM_INITIALIZED));
  pass_around();
  draw_numbers();
  report_to_rank_0();
  add_up_in_a_group((gaspi_rank_t)((ranks + 1) / 2));
  CHECK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));
  CHECK(gaspi_segment_delete(inbox));
  CHECK(gaspi_segment_delete(outbox));
  CHECK(gaspi_proc_term(GASPI_BLOCK));
  printf("rank %d of %d: all values were right\n", (int)rank, (int)ranks);
  return EXIT_SUCCESS;
}
