// SPDX-License-Identifier: Apache-2.0
// OpenMP threads of each rank communicate by themselves: each thread has a queue, a signal and a row of the inbox of
// its own, and its own channel for collectives.   beeline run -n 2 ./threads_c
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

#include "beeline/beeline.h"

enum { threads = 3, rounds = 20, count = 64 };

static void require(beeline_status status) {
  if (status == BEELINE_OK) return;
  fprintf(stderr, "%s: %s\n", beeline_status_name(status), beeline_last_error());  // this thread's text
  exit(1);
}
static void verify(int64_t expected, int64_t observed) {
  if (expected == observed) return;
  fprintf(stderr, "expected %lld, observed %lld\n", (long long)expected, (long long)observed);
  exit(1);
}
static int64_t number(int rank, int thread, int round, int i) {
  return ((rank * threads + thread) * rounds + round) * count + i;
}

// A row of the inbox for each round: a rank may be ahead of its next rank.
static int64_t* row_of(int64_t* inbox, int thread, int round) { return inbox + (thread * rounds + round) * count; }

static void communicate(beeline_team* team, int thread, int64_t* inbox, uint64_t* signals,
                        beeline_collectives* collectives) {
  const int32_t rank = beeline_team_rank(team), size = beeline_team_size(team);
  const int32_t next = (rank + 1) % size, previous = (rank + size - 1) % size;
  const uint32_t queue = (uint32_t)thread;
  int64_t outbox[count], sum = 0;
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < count; ++i) outbox[i] = number(rank, thread, round, i);
    int64_t* const row = row_of(inbox, thread, round);
    require(beeline_put_signal(team, row, outbox, sizeof outbox, &signals[thread], (uint64_t)round + 1, next, queue));
    // A limit of 0 polls once: a thread may compute between its polls.
    beeline_status status = BEELINE_TIMEOUT;
    while (status == BEELINE_TIMEOUT)
      status = beeline_wait(team, &signals[thread], BEELINE_GREATER_EQUAL, (uint64_t)round + 1, previous,
                            round % 2 == 0 ? 0 : BEELINE_NO_TIMEOUT);
    require(status);
    for (int i = 0; i < count; ++i) verify(number(previous, thread, round, i), row[i]);
    sum += row[0];
    require(beeline_flush(team, queue));
  }
  // All sums of all ranks' threads of this number.
  require(beeline_allreduce(collectives, &sum, &sum, 1, BEELINE_INT64, BEELINE_SUM, NULL));
  int64_t expected = 0;
  for (int each = 0; each < size; ++each)
    for (int round = 0; round < rounds; ++round) expected += number(each, thread, round, 0);
  verify(expected, sum);
}

int main(void) {
  beeline_world* world;
  require(beeline_world_create(NULL, &world));
  beeline_team* const team = beeline_world_team(world);
  void* inbox;
  uint64_t* signals;
  beeline_collectives* collectives[threads];
  require(beeline_allocate(team, sizeof(int64_t) * threads * rounds * count, BEELINE_HEAP_PINNED, &inbox));
  require(beeline_allocate_signals(team, threads, BEELINE_HEAP_PINNED, &signals));
  for (int thread = 0; thread < threads; ++thread)
    require(beeline_collectives_create(team, NULL, &collectives[thread]));
#pragma omp parallel num_threads(threads)
  {
    if (omp_get_num_threads() != threads) {
      fprintf(stderr, "OpenMP gives %d threads of %d\n", omp_get_num_threads(), threads);
      exit(1);
    }
    const int thread = omp_get_thread_num();
    communicate(team, thread, inbox, signals, collectives[thread]);
  }
  for (int thread = 0; thread < threads; ++thread) require(beeline_collectives_destroy(collectives[thread]));
  require(beeline_free(team, signals));
  require(beeline_free(team, inbox));
  printf("rank %d of %d with %d threads: verified\n", beeline_team_rank(team), beeline_team_size(team), threads);
  require(beeline_world_close(world));
  return 0;
}
