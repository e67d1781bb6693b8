// SPDX-License-Identifier: Apache-2.0
/* beeline-bench-gaspi LIBRARY host|gpu SIZE,...: times of GASPI's functions between ranks 0 and 1 (barrier, all-reduce:
 * among all), as JSON lines. It calls functions of the standard only, so that another implementation can be measured by
 * the same source; with BENCH_GASPI_GPU also those of GPU segments. */
#include <GASPI.h>
#ifdef BENCH_GASPI_GPU
#include <GASPI_GPU.h>
#endif

#include "report.h"

enum { data = 0, staging = 1 };            /* segments: of the chosen memory, and of host memory */
enum { ping = 0, pong = 1, last = 65535 }; /* notifications of `data` */
enum { window = 16, queue = 0, most_sizes = 32 };

static gaspi_rank_t rank, ranks;
static const char *library, *memory;
static size_t half; /* bytes of `data` for what comes, and of those for what goes */

static void check(gaspi_return_t result, const char* call) {
  if (result == GASPI_SUCCESS) return;
  fprintf(stderr, "rank %d: %s: result %d\n", (int)rank, call, (int)result);
  exit(EXIT_FAILURE);
}
#define CHECK(call) check(call, #call)

typedef gaspi_return_t (*write_call)(gaspi_segment_id_t, gaspi_offset_t, gaspi_rank_t, gaspi_segment_id_t,
                                     gaspi_offset_t, gaspi_size_t, gaspi_queue_id_t, gaspi_timeout_t);
typedef gaspi_return_t (*write_notify_call)(gaspi_segment_id_t, gaspi_offset_t, gaspi_rank_t, gaspi_segment_id_t,
                                            gaspi_offset_t, gaspi_size_t, gaspi_notification_id_t, gaspi_notification_t,
                                            gaspi_queue_id_t, gaspi_timeout_t);

static void meet(void) { CHECK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK)); }

static struct row row_of(const char* operation, const char* call, size_t bytes) {
  struct row row;
  row.operation = operation;
  row.library = library;
  row.call = call;
  row.memory = memory;
  row.bytes = bytes;
  row.ranks = ranks;
  return row;
}

static void report(const struct row* row, const char* unit, const double* samples, int operations, int verified) {
  if (rank == 0) print_row(row, unit, samples, operations, verified);
}

static void await(gaspi_notification_id_t id) {
  gaspi_notification_id_t found;
  gaspi_notification_t value;
  CHECK(gaspi_notify_waitsome(data, id, 1, &found, GASPI_BLOCK));
  CHECK(gaspi_notify_reset(data, found, &value));
}

static unsigned char pattern(size_t i, int of) { return (unsigned char)(13 * i + i / 255 + 7 * (size_t)of + 1); }

/* Fills what goes with this rank's pattern, through the host segment. */
static void fill(size_t bytes) {
  gaspi_pointer_t host;
  size_t i;
  CHECK(gaspi_segment_ptr(staging, &host));
  for (i = 0; i < bytes; ++i) ((unsigned char*)host)[i] = pattern(i, rank);
  CHECK(gaspi_write(staging, 0, rank, data, half, bytes, queue, GASPI_BLOCK));
  CHECK(gaspi_wait(queue, GASPI_BLOCK));
  meet();
}

/* Whether what came is the pattern of rank `of`. */
static int came_from(int of, size_t bytes) {
  gaspi_pointer_t host;
  size_t i;
  CHECK(gaspi_segment_ptr(staging, &host));
  CHECK(gaspi_read(staging, 0, rank, data, 0, bytes, queue, GASPI_BLOCK));
  CHECK(gaspi_wait(queue, GASPI_BLOCK));
  for (i = 0; i < bytes; ++i)
    if (((const unsigned char*)host)[i] != pattern(i, of)) return 0;
  return 1;
}

/* The operations of a batch of about 3 ms, the same on all ranks, for operations that take `time_us` on this one. */
static int agreed_operations(double time_us) {
  gaspi_int mine = operations_in_batch(time_us), least = 0;
  CHECK(gaspi_allreduce(&mine, &least, 1, GASPI_OP_MIN, GASPI_TYPE_INT, GASPI_GROUP_ALL, GASPI_BLOCK));
  return least;
}

/* Time of a round trip of write_notify. */
static double round_trip_us(write_notify_call call, size_t bytes, int rounds) {
  double start;
  int round;
  meet();
  start = now_us();
  for (round = 0; round < rounds && rank < 2; ++round) {
    if (rank == 1) await(ping);
    CHECK(call(data, half, (gaspi_rank_t)(1 - rank), data, 0, bytes, rank == 0 ? ping : pong, 1, queue, GASPI_BLOCK));
    if (rank == 0) await(pong);
    if (round % 64 == 63) CHECK(gaspi_wait(queue, GASPI_BLOCK));
  }
  start = (now_us() - start) / rounds;
  CHECK(gaspi_wait(queue, GASPI_BLOCK));
  return start;
}

/* One way of a ping-pong of write_notify. */
static void measure_message(write_notify_call call, const char* name, size_t bytes) {
  const struct row row = row_of("gaspi_message", name, bytes);
  double samples[samples_of_a_result];
  int sample, rounds, verified;
  fill(bytes);
  round_trip_us(call, bytes, 10);
  rounds = agreed_operations(round_trip_us(call, bytes, 50));
  for (sample = 0; sample < samples_of_a_result; ++sample) samples[sample] = round_trip_us(call, bytes, rounds) / 2;
  verified = rank > 1 || came_from(1 - rank, bytes);
  report(&row, "us", samples, rounds, verified);
  meet();
}

static void busy_us(double duration) {
  const double end = now_us() + duration;
  while (now_us() < end) {
  }
}

/* Time of a post, work, and wait. */
static double post_work_wait_us(write_call call, size_t bytes, int rounds, double work_us) {
  const double start = now_us();
  int round;
  for (round = 0; round < rounds; ++round) {
    CHECK(call(data, half, 1, data, 0, bytes, queue, GASPI_BLOCK));
    if (work_us > 0) busy_us(work_us);
    CHECK(gaspi_wait(queue, GASPI_BLOCK));
  }
  return (now_us() - start) / rounds;
}

/* A write and a wait; and what of it remains beside work that takes longer: the processor's overhead. */
static void measure_put(write_call call, const char* name, size_t bytes) {
  const struct row put = row_of("gaspi_put", name, bytes), overhead = row_of("gaspi_overhead", name, bytes);
  double samples[samples_of_a_result], left[samples_of_a_result];
  int sample, rounds = 4;
  fill(bytes);
  for (sample = -2; sample < samples_of_a_result && rank == 0; ++sample) {
    const double time = post_work_wait_us(call, bytes, rounds, 0);
    if (sample >= 0) samples[sample] = time;
    if (sample < 0) rounds = operations_in_batch(time);
  }
  for (sample = 0; sample < samples_of_a_result && rank == 0; ++sample) {
    const double work = 2 * median_of(samples) + 1;
    left[sample] = post_work_wait_us(call, bytes, rounds, work) - work;
  }
  meet();
  report(&put, "us", samples, rounds, -1);
  report(&overhead, "us", left, rounds, -1);
}

/* Time of windows of writes, up to the answer to a notification behind them. */
static double windows_us(write_call call, size_t bytes, int windows) {
  double start;
  int i, of_window;
  meet();
  start = now_us();
  if (rank == 1) {
    await(ping);
    CHECK(gaspi_notify(data, 0, pong, 1, queue, GASPI_BLOCK));
  }
  for (i = 0; i < windows && rank == 0; ++i) {
    for (of_window = 0; of_window < window; ++of_window) CHECK(call(data, half, 1, data, 0, bytes, queue, GASPI_BLOCK));
    CHECK(gaspi_wait(queue, GASPI_BLOCK));
  }
  if (rank == 0) {
    CHECK(gaspi_notify(data, 1, ping, 1, queue, GASPI_BLOCK));
    await(pong);
  }
  start = now_us() - start;
  CHECK(gaspi_wait(queue, GASPI_BLOCK));
  return start;
}

static void measure_bandwidth(write_call call, const char* name, size_t bytes) {
  const struct row row = row_of("gaspi_bandwidth", name, bytes);
  double samples[samples_of_a_result];
  int sample, windows;
  fill(bytes);
  windows_us(call, bytes, 1);
  windows = agreed_operations(windows_us(call, bytes, 2) / 2);
  for (sample = 0; sample < samples_of_a_result; ++sample)
    samples[sample] = 1e-3 * (double)bytes * windows * window / windows_us(call, bytes, windows);
  if (rank == 1 && !came_from(0, bytes)) {
    fprintf(stderr, "rank 1: wrong data\n");
    exit(EXIT_FAILURE);
  }
  report(&row, "GB/s", samples, windows * window, 1);
  meet();
}

/* Notifications of one rank to another, each with another id, and the waits of their queue. */
static void measure_notifications(void) {
  const struct row row = row_of("gaspi_notifications", "notify", 0);
  enum { batch = 256 };
  double samples[samples_of_a_result];
  int sample, i, id, batches = 1;
  meet();
  for (sample = -2; sample < samples_of_a_result && rank == 0; ++sample) {
    const double start = now_us();
    double time;
    for (i = 0; i < batches; ++i) {
      for (id = 16; id < 16 + batch; ++id)
        CHECK(gaspi_notify(data, 1, (gaspi_notification_id_t)id, 1, queue, GASPI_BLOCK));
      CHECK(gaspi_wait(queue, GASPI_BLOCK));
    }
    time = (now_us() - start) / batches;
    if (sample >= 0) samples[sample] = batch / time;
    if (sample < 0) batches = operations_in_batch(time);
  }
  report(&row, "Mmsg/s", samples, batch * batches, -1);
  meet();
}

/* notify_waitsome over all notifications of a segment, when only the last one is set. */
static void measure_waitsome(void) {
  const struct row row = row_of("gaspi_waitsome", "notify_waitsome", 0);
  double samples[samples_of_a_result];
  gaspi_notification_id_t found, id;
  gaspi_notification_t value;
  int sample, i;
  for (id = 0; id < last; ++id) CHECK(gaspi_notify_reset(data, id, &value));
  meet();
  for (sample = 0; sample < samples_of_a_result && rank == 0; ++sample) {
    samples[sample] = 0;
    for (i = 0; i < 20; ++i) {
      double start;
      CHECK(gaspi_notify(data, 0, last, 1, queue, GASPI_BLOCK));
      CHECK(gaspi_wait(queue, GASPI_BLOCK));
      CHECK(gaspi_notify_waitsome(data, last, 1, &found, GASPI_BLOCK)); /* it has arrived */
      start = now_us();
      CHECK(gaspi_notify_waitsome(data, 0, last + 1, &found, GASPI_BLOCK));
      samples[sample] += (now_us() - start) / 20;
      if (found != last) exit(EXIT_FAILURE);
      CHECK(gaspi_notify_reset(data, last, &value));
    }
  }
  report(&row, "us", samples, 20, -1);
  meet();
}

/* Time of a barrier of all ranks. */
static double barriers_us(int rounds) {
  const double start = now_us();
  int i;
  for (i = 0; i < rounds; ++i) meet();
  return (now_us() - start) / rounds;
}

static void measure_barrier(void) {
  const struct row row = row_of("gaspi_barrier", "barrier", 0);
  double samples[samples_of_a_result];
  const int rounds = agreed_operations(barriers_us(16));
  int sample;
  for (sample = 0; sample < samples_of_a_result; ++sample) samples[sample] = barriers_us(rounds);
  report(&row, "us", samples, rounds, -1);
}

/* Time of an all-reduce of doubles. */
static double allreduces_us(gaspi_pointer_t from, gaspi_pointer_t to, gaspi_number_t count, int rounds) {
  const double start = now_us();
  int i;
  for (i = 0; i < rounds; ++i)
    CHECK(gaspi_allreduce(from, to, count, GASPI_OP_SUM, GASPI_TYPE_DOUBLE, GASPI_GROUP_ALL, GASPI_BLOCK));
  return (now_us() - start) / rounds;
}

/* On buffers in the chosen memory; those in host memory are verified. */
static void measure_allreduce(gaspi_number_t count) {
  const struct row row = row_of("gaspi_allreduce", "allreduce", count * sizeof(double));
  double samples[samples_of_a_result];
  double in[255], out[255];
  gaspi_pointer_t base = NULL;
  int sample, rounds, i;
  const int on_gpu = strcmp(memory, "gpu") == 0;
  for (i = 0; i < 255; ++i) in[i] = i + rank;
  CHECK(gaspi_segment_ptr(data, &base));
  {
    const gaspi_pointer_t from = on_gpu ? (gaspi_pointer_t)((char*)base + half) : (gaspi_pointer_t)in;
    const gaspi_pointer_t to = on_gpu ? base : (gaspi_pointer_t)out;
    rounds = agreed_operations(allreduces_us(from, to, count, 8));
    for (sample = 0; sample < samples_of_a_result; ++sample) samples[sample] = allreduces_us(from, to, count, rounds);
  }
  report(&row, "us", samples, rounds, on_gpu ? -1 : out[0] == ranks * (ranks - 1) / 2.0);
}

static void measure_writes(write_call write, write_notify_call write_notify, const char* name, const char* notify_name,
                           const size_t* sizes, int count) {
  int i;
  for (i = 0; i < count; ++i) measure_message(write_notify, notify_name, sizes[i]);
  for (i = 0; i < count; ++i) measure_put(write, name, sizes[i]);
  for (i = 0; i < count; ++i) measure_bandwidth(write, name, sizes[i]);
}

int main(int argument_count, char** arguments) {
  size_t sizes[most_sizes];
  int count, i;
  gaspi_alloc_t policy = GASPI_MEM_INITIALIZED;
  if (argument_count != 4) {
    fprintf(stderr, "usage: beeline-bench-gaspi LIBRARY host|gpu SIZE,...\n");
    return 2;
  }
  library = arguments[1];
  memory = arguments[2];
  count = sizes_of(arguments[3], sizes, most_sizes);
  for (i = 0; i < count; ++i) half = sizes[i] > half ? sizes[i] : half;
  half = half < 4096 ? 4096 : half;
  CHECK(gaspi_proc_init(GASPI_BLOCK));
  CHECK(gaspi_proc_rank(&rank));
  CHECK(gaspi_proc_num(&ranks));
  if (ranks < 2) {
    fprintf(stderr, "beeline-bench-gaspi needs two ranks or more\n");
    return 2;
  }
#ifdef BENCH_GASPI_GPU
  if (strcmp(memory, "gpu") == 0) {
    CHECK(gaspi_gpu_init());
    policy |= GASPI_MEM_GPU;
  }
#endif
  CHECK(gaspi_segment_create(staging, half, GASPI_GROUP_ALL, GASPI_BLOCK, GASPI_MEM_INITIALIZED));
  CHECK(gaspi_segment_create(data, 2 * half, GASPI_GROUP_ALL, GASPI_BLOCK, policy));
  measure_writes(gaspi_write, gaspi_write_notify, "write", "write_notify", sizes, count);
#ifdef BENCH_GASPI_GPU
  if (strcmp(memory, "gpu") == 0)
    measure_writes(gaspi_gpu_write, gaspi_gpu_write_notify, "gpu_write", "gpu_write_notify", sizes, count);
#endif
  if (strcmp(memory, "gpu") != 0) {
    measure_notifications();
    measure_waitsome();
    measure_barrier();
  }
  measure_allreduce(1);
  measure_allreduce(16);
  measure_allreduce(255);
  meet();
  CHECK(gaspi_proc_term(GASPI_BLOCK));
  return EXIT_SUCCESS;
}
