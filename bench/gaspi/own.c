// SPDX-License-Identifier: Apache-2.0
/* beeline-bench-gaspi-own SIZE,...: what the functions of GASPI are compared with, between ranks 0 and 1 on CPUs of one
 * node: Beeline's own calls of the C interface (library `c`), and loops without Beeline (library `bare`). */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include "beeline/beeline.h"
#include "report.h"

enum { most_sizes = 32, window = 16, shared_bytes = 4096 };

static beeline_world* world;
static beeline_team* team;
static beeline_collectives* collectives;
static int32_t rank, ranks;
static char* data; /* symmetric: `half` bytes for what comes, then as many for what goes */
static size_t half;
static uint64_t* arrived; /* symmetric signals: the ping-pong's, and that of windows */
static uint64_t sent;     /* value of the last signal */
static uint64_t* words;   /* a file that both processes have mapped; word 0 is rank 0's, word 16 rank 1's */

static void check(beeline_status status, const char* call) {
  if (status == BEELINE_OK) return;
  fprintf(stderr, "rank %d: %s: %s\n", (int)rank, call, beeline_last_error());
  exit(EXIT_FAILURE);
}
#define CHECK(call) check(call, #call)

static void require(int condition, const char* what) {
  if (condition) return;
  fprintf(stderr, "rank %d: %s does not hold\n", (int)rank, what);
  exit(EXIT_FAILURE);
}
#define REQUIRE(condition) require(condition, #condition)

static void meet(void) { CHECK(beeline_barrier(team, BEELINE_NO_TIMEOUT)); }

static struct row row_of(const char* operation, const char* library, const char* call, size_t bytes) {
  struct row row;
  row.operation = operation;
  row.library = library;
  row.call = call;
  row.memory = "host";
  row.bytes = bytes;
  row.ranks = ranks;
  return row;
}

static void report(const struct row* row, const char* unit, const double* samples, int operations, int verified) {
  if (rank == 0) print_row(row, unit, samples, operations, verified);
}

/* The operations of a batch of about 3 ms, the same on all ranks. */
static int agreed_operations(double time_us) {
  int64_t mine = operations_in_batch(time_us), least = 0;
  CHECK(beeline_allreduce(collectives, &least, &mine, 1, BEELINE_INT64, BEELINE_MINIMUM, NULL));
  return (int)least;
}

static double round_trip_us(size_t bytes, int rounds) {
  double start;
  int round;
  meet();
  start = now_us();
  for (round = 0; round < rounds && rank < 2; ++round) {
    ++sent;
    if (rank == 1) CHECK(beeline_wait(team, arrived, BEELINE_GREATER_EQUAL, sent, 0, BEELINE_NO_TIMEOUT));
    CHECK(beeline_put_signal(team, data, data + half, bytes, arrived, sent, 1 - rank, 0));
    if (rank == 0) CHECK(beeline_wait(team, arrived, BEELINE_GREATER_EQUAL, sent, 1, BEELINE_NO_TIMEOUT));
    if (round % 64 == 63) CHECK(beeline_flush(team, 0));
  }
  return (now_us() - start) / rounds;
}

static double flag_round_trip_us(int rounds) {
  static uint64_t value = 0;
  double start;
  int round;
  meet();
  start = now_us();
  for (round = 0; round < rounds && rank < 2; ++round) {
    ++value;
    if (rank == 0) __atomic_store_n(words + 16, value, __ATOMIC_RELEASE);
    while (__atomic_load_n(words + (rank == 0 ? 0 : 16), __ATOMIC_ACQUIRE) != value) {
    }
    if (rank == 1) __atomic_store_n(words, value, __ATOMIC_RELEASE);
  }
  return (now_us() - start) / rounds;
}

static void measure_flag(void) {
  const struct row row = row_of("gaspi_message", "bare", "flag", 8);
  double samples[samples_of_a_result];
  const int rounds = (flag_round_trip_us(100), agreed_operations(flag_round_trip_us(1000)));
  int sample;
  for (sample = 0; sample < samples_of_a_result; ++sample) samples[sample] = flag_round_trip_us(rounds) / 2;
  report(&row, "us", samples, rounds, -1);
}

static void measure_message(size_t bytes) {
  const struct row row = row_of("gaspi_message", "c", "put_signal", bytes);
  double samples[samples_of_a_result];
  const int rounds = (round_trip_us(bytes, 10), agreed_operations(round_trip_us(bytes, 50)));
  size_t i;
  int sample, verified = 1;
  for (i = 0; i < bytes; ++i) data[half + i] = (char)(i * 7 + (size_t)rank);
  for (sample = 0; sample < samples_of_a_result; ++sample) samples[sample] = round_trip_us(bytes, rounds) / 2;
  for (i = 0; i < bytes && rank < 2; ++i) verified &= data[i] == (char)(i * 7 + (size_t)(1 - rank));
  REQUIRE(verified);
  report(&row, "us", samples, rounds, 1);
}

/* A put, and the wait until its source may change. */
static double puts_us(size_t bytes, int operations) {
  const double start = now_us();
  int i;
  for (i = 0; i < operations; ++i) {
    CHECK(beeline_put(team, data, data + half, bytes, 1, 0));
    CHECK(beeline_flush(team, 0));
  }
  return (now_us() - start) / operations;
}

static void measure_put(size_t bytes) {
  const struct row row = row_of("gaspi_put", "c", "put", bytes);
  double samples[samples_of_a_result];
  int sample, operations = 20;
  meet();
  for (sample = -2; sample < samples_of_a_result && rank == 0; ++sample) {
    const double time = puts_us(bytes, operations);
    if (sample >= 0) samples[sample] = time;
    if (sample < 0) operations = operations_in_batch(time);
  }
  meet();
  report(&row, "us", samples, operations, -1);
}

/* Windows of puts, up to the answer to a signal behind them. */
static double windows_us(size_t bytes, int windows) {
  double start;
  int i, of_window;
  meet();
  start = now_us();
  ++sent;
  for (i = 0; i < windows && rank == 0; ++i) {
    for (of_window = 0; of_window < window; ++of_window) CHECK(beeline_put(team, data, data + half, bytes, 1, 0));
    CHECK(beeline_flush(team, 0));
  }
  if (rank == 1) CHECK(beeline_wait(team, arrived, BEELINE_GREATER_EQUAL, sent, 0, BEELINE_NO_TIMEOUT));
  if (rank < 2) CHECK(beeline_signal(team, arrived, sent, 1 - rank, 0));
  if (rank == 0) CHECK(beeline_wait(team, arrived, BEELINE_GREATER_EQUAL, sent, 1, BEELINE_NO_TIMEOUT));
  return now_us() - start;
}

static void measure_bandwidth(size_t bytes) {
  const struct row row = row_of("gaspi_bandwidth", "c", "put", bytes);
  double samples[samples_of_a_result];
  const int windows = (windows_us(bytes, 1), agreed_operations(windows_us(bytes, 2) / 2));
  int sample;
  for (sample = 0; sample < samples_of_a_result; ++sample)
    samples[sample] = 1e-3 * (double)bytes * windows * window / windows_us(bytes, windows);
  report(&row, "GB/s", samples, windows * window, -1);
}

static double collectives_us(size_t count, int operations) {
  double in[255], out[255], start;
  int i;
  for (i = 0; i < 255; ++i) in[i] = i + rank;
  meet();
  start = now_us();
  for (i = 0; i < operations; ++i) {
    if (count == 0)
      meet();
    else
      CHECK(beeline_allreduce(collectives, out, in, count, BEELINE_FLOAT64, BEELINE_SUM, NULL));
  }
  start = (now_us() - start) / operations;
  REQUIRE(count == 0 || out[0] == ranks * (ranks - 1) / 2.0);
  return start;
}

/* An all-reduce of doubles; without elements, a barrier. */
static void measure_collective(size_t count) {
  const struct row row = row_of(count == 0 ? "gaspi_barrier" : "gaspi_allreduce", "c",
                                count == 0 ? "barrier" : "allreduce", count * sizeof(double));
  double samples[samples_of_a_result];
  const int operations = agreed_operations(collectives_us(count, 50));
  int sample;
  for (sample = 0; sample < samples_of_a_result; ++sample) samples[sample] = collectives_us(count, operations);
  report(&row, "us", samples, operations, count == 0 ? -1 : 1);
}

/* Rank 0 makes a file in memory; rank 1 opens it by the number of rank 0's process. */
static void map_words(void) {
  int64_t* const where = (int64_t*)data;
  int file = -1;
  if (rank == 0) {
    file = memfd_create("beeline-bench-gaspi", 0);
    REQUIRE(file >= 0 && ftruncate(file, shared_bytes) == 0);
    where[half / sizeof *where] = getpid();
    where[half / sizeof *where + 1] = file;
    CHECK(beeline_put(team, data, data + half, 2 * sizeof *where, 1, 0));
    CHECK(beeline_quiet(team, 0));
  }
  meet();
  if (rank == 1) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/fd/%ld", (long)where[0], (long)where[1]);
    file = open(path, O_RDWR);
    REQUIRE(file >= 0);
  }
  if (rank < 2) words = mmap(NULL, shared_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  REQUIRE(words != MAP_FAILED);
  meet();
}

/* Joins the world with room for `bytes` in the pinned heap. */
static void join(size_t bytes) {
  beeline_config* config = NULL;
  char text[32];
  snprintf(text, sizeof text, "%zu", bytes + ((size_t)64 << 20)); /* and for what the library puts there */
  CHECK(beeline_config_create(&config));
  CHECK(beeline_config_set(config, "PINNED_HEAP_BYTES", text));
  CHECK(beeline_world_create(config, &world));
  CHECK(beeline_config_destroy(config));
}

int main(int argument_count, char** arguments) {
  size_t sizes[most_sizes];
  int count, i;
  if (argument_count != 2) {
    fprintf(stderr, "usage: beeline-bench-gaspi-own SIZE,...\n");
    return 2;
  }
  count = sizes_of(arguments[1], sizes, most_sizes);
  for (i = 0; i < count; ++i) half = sizes[i] > half ? sizes[i] : half;
  half = half < 4096 ? 4096 : (half + 7) / 8 * 8;
  join(2 * half);
  team = beeline_world_team(world);
  rank = beeline_team_rank(team);
  ranks = beeline_team_size(team);
  REQUIRE(ranks >= 2);
  CHECK(beeline_allocate(team, 2 * half, BEELINE_HEAP_PINNED, (void**)&data));
  CHECK(beeline_allocate_signals(team, 1, BEELINE_HEAP_PINNED, &arrived));
  CHECK(beeline_collectives_create(team, NULL, &collectives));
  map_words();
  measure_flag();
  for (i = 0; i < count; ++i) measure_message(sizes[i]);
  for (i = 0; i < count; ++i) measure_put(sizes[i]);
  for (i = 0; i < count; ++i) measure_bandwidth(sizes[i]);
  measure_collective(0);
  measure_collective(1);
  measure_collective(16);
  measure_collective(255);
  CHECK(beeline_collectives_destroy(collectives));
  CHECK(beeline_free(team, arrived));
  CHECK(beeline_free(team, data));
  CHECK(beeline_world_close(world));
  return EXIT_SUCCESS;
}
