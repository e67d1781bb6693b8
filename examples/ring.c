// SPDX-License-Identifier: Apache-2.0
// Each rank puts numbers into the next rank's memory with a signal, waits for those of the previous rank, and verifies
// them; then all ranks add up a vector.   beeline run -n 4 ./ring_c
#include <stdio.h>
#include <stdlib.h>

#include "beeline/beeline.h"

enum { count = 1000, rounds = 5 };

// A rank that ends without closing its world ends the other ranks, too, with an error that names it.
static void require(beeline_status status) {
  if (status == BEELINE_OK) return;
  fprintf(stderr, "%s: %s\n", beeline_status_name(status), beeline_last_error());
  exit(1);
}
static void verify(double expected, double observed) {
  if (expected == observed) return;
  fprintf(stderr, "expected %g, observed %g\n", expected, observed);
  exit(1);
}

static void pass_around(beeline_team* team) {
  const int32_t rank = beeline_team_rank(team), size = beeline_team_size(team);
  const int32_t next = (rank + 1) % size, previous = (rank + size - 1) % size;
  void* memory;
  uint64_t* arrived;
  // Host memory on all ranks, so that CPU threads reach it on GPU ranks, too; a row for each round.
  require(beeline_allocate(team, rounds * count * sizeof(double), BEELINE_HEAP_PINNED, &memory));
  require(beeline_allocate_signals(team, 1, BEELINE_HEAP_PINNED, &arrived));
  double* const inbox = memory;
  double outbox[count];
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < count; ++i) outbox[i] = 1000 * rank + 10 * round + i;
    double* const row = inbox + round * count;  // this rank's address of what the next rank gets
    require(beeline_put_signal(team, row, outbox, sizeof outbox, arrived, (uint64_t)round + 1, next, 0));
    require(beeline_wait(team, arrived, BEELINE_GREATER_EQUAL, (uint64_t)round + 1, previous, BEELINE_NO_TIMEOUT));
    for (int i = 0; i < count; ++i) verify(1000 * previous + 10 * round + i, row[i]);
    require(beeline_flush(team, 0));  // the outbox may change
  }
  require(beeline_barrier(team, BEELINE_NO_TIMEOUT));
  require(beeline_free(team, arrived));
  require(beeline_free(team, memory));
}

static void add_up(beeline_world* world) {
  beeline_team* const team = beeline_world_team(world);
  const int32_t rank = beeline_team_rank(team), size = beeline_team_size(team);
  beeline_collectives* collectives;
  require(beeline_collectives_create(team, NULL, &collectives));
  void* memory;
  require(beeline_allocate(team, count * sizeof(float), BEELINE_HEAP_SYMMETRIC, &memory));
  float values[count];
  for (int i = 0; i < count; ++i) values[i] = (float)(rank + i);
  require(beeline_copy(world, memory, values, sizeof values));
  require(beeline_allreduce(collectives, memory, memory, count, BEELINE_FLOAT32, BEELINE_SUM, NULL));  // blocks
  // The same on a stream, with a limit for this call's wait: the maximum of what all have is what each has.
  const beeline_call call = {.struct_bytes = sizeof(beeline_call), .stream = beeline_default_stream(world)};
  require(beeline_allreduce(collectives, memory, memory, count, BEELINE_FLOAT32, BEELINE_MAXIMUM, &call));
  require(beeline_synchronize(call.stream, 20u * 1000000000u));
  require(beeline_copy(world, values, memory, sizeof values));
  for (int i = 0; i < count; ++i) verify(size * (size - 1) / 2 + size * i, values[i]);
  require(beeline_free(team, memory));
  require(beeline_collectives_destroy(collectives));
}

int main(void) {
  beeline_world* world;
  require(beeline_world_create(NULL, &world));
  beeline_team* const team = beeline_world_team(world);
  beeline_device device = {.struct_bytes = sizeof(beeline_device)};
  require(beeline_world_device(world, beeline_team_rank(team), &device));
  pass_around(team);
  add_up(world);
  printf("rank %d of %d on node %d, %s: verified\n", beeline_team_rank(team), beeline_team_size(team), device.node,
         device.name);
  require(beeline_world_close(world));
  return 0;
}
