// SPDX-License-Identifier: Apache-2.0
// Task-based Gauss-Seidel: heat on a plate, where each point takes the new values above and left of it. Each rank has
// some rows, cut into blocks of columns. A task updates one block in one iteration, and any thread runs it once
//   - the block left of it has been updated in this iteration, the block right of it in the one before;
//   - the row above has come from the previous rank for this iteration, the row below for the one before.
// It sends the block's first and last row with notifications, which make tasks of the neighbours ready: iterations
// travel over the ranks as a wave, and no thread waits for a particular message. The field must have the same bits as
// that of one rank.
#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "checks.h"

namespace {

constexpr int columns = 128, rows = 16, blocks = 8, width = columns / blocks, iterations = 25, threads = 2;
constexpr gaspi_segment_id_t field = 0;  // [rows + 2][columns], with the neighbours' rows above and below

double initial(int row, int column) { return row % 5 * 0.5 + column % 3 + (column == 0 ? 50.0 : 0.0); }

/// Updates rows [first, last) of a block; the outermost columns never change.
void update(double* values, int first, int last, int block) {
  for (int i = first; i < last; ++i)
    for (int j = std::max(block * width, 1); j < std::min((block + 1) * width, columns - 1); ++j) {
      double* const at = values + i * columns + j;
      *at = 0.25 * (at[-columns] + at[-1] + at[1] + at[columns]);
    }
}

struct Task {
  int block, iteration;
};

/// Which tasks are ready. All functions are called with `mutex` locked.
class Schedule {
 public:
  std::mutex mutex;

  [[nodiscard]] bool is_over() const { return *std::min_element(done_.begin(), done_.end()) == iterations; }
  /// Takes a task that is ready.
  std::optional<Task> take() {
    for (int block = 0; block < blocks; ++block) {
      const int iteration = done_[index(block)];
      if (iteration == iterations || is_taken_[index(block)] || !is_ready(block, iteration)) continue;
      is_taken_[index(block)] = true;
      return Task{block, iteration};
    }
    return std::nullopt;
  }
  void finish(const Task& task) {
    is_taken_[index(task.block)] = false;
    ++done_[index(task.block)];
  }
  /// A row of a block has come: notifications 0 to blocks - 1 announce rows from above.
  void arrive(int notification) { ++(notification < blocks ? above_ : below_)[index(notification % blocks)]; }

 private:
  static std::size_t index(int block) { return static_cast<std::size_t>(block); }
  [[nodiscard]] bool is_ready(int block, int iteration) const {
    return (block == 0 || done_[index(block - 1)] > iteration) &&
           (block == blocks - 1 || done_[index(block + 1)] >= iteration) &&
           (rank == 0 || above_[index(block)] > iteration) && (rank == ranks - 1 || below_[index(block)] >= iteration);
  }

  std::vector<int> done_ = std::vector<int>(blocks), above_ = done_, below_ = done_;  ///< iterations, by block
  std::vector<bool> is_taken_ = std::vector<bool>(blocks);
};

/// Sends a row of a block to the neighbour's halo. `queue` is the calling thread's.
void send_row(int from, int to, gaspi_rank_t neighbour, int notification, const Task& task, gaspi_queue_id_t queue) {
  const auto offset = [&](int row) { return static_cast<gaspi_offset_t>(row * columns + task.block * width) * 8; };
  CHECK(gaspi_write_notify(field, offset(from), neighbour, field, offset(to), width * sizeof(double),
                           static_cast<gaspi_notification_id_t>(notification),
                           static_cast<gaspi_notification_t>(task.iteration + 1), queue, GASPI_BLOCK));
}

/// A row that was sent changes only after the neighbour has answered with a row that it computed from it: there is
/// nothing to wait for before the next task.
void run_task(double* values, const Task& task, gaspi_queue_id_t queue) {
  update(values, 1, rows + 1, task.block);
  if (rank + 1 < ranks) send_row(rows, 0, static_cast<gaspi_rank_t>(rank + 1), task.block, task, queue);
  if (rank > 0) send_row(1, rows + 1, static_cast<gaspi_rank_t>(rank - 1), blocks + task.block, task, queue);
  gaspi_number_t size = 0;
  CHECK(gaspi_queue_size(queue, &size));
  if (size > 100) CHECK(gaspi_wait(queue, GASPI_BLOCK));  // the queue has room again
}

/// Takes one notification that has come, if any. Of several threads one gets it.
void take_notification(Schedule& schedule) {
  gaspi_notification_id_t id = 0;
  gaspi_notification_t value = 0;
  const gaspi_return_t found = gaspi_notify_waitsome(field, 0, 2 * blocks, &id, 1);
  if (found == GASPI_TIMEOUT) return;
  check(found, "gaspi_notify_waitsome");
  CHECK(gaspi_notify_reset(field, id, &value));
  if (value == 0) return;
  const std::lock_guard lock(schedule.mutex);
  schedule.arrive(id);
}

void work(double* values, Schedule& schedule, gaspi_queue_id_t queue) {
  for (;;) {
    std::optional<Task> task;
    {
      const std::lock_guard lock(schedule.mutex);
      if (schedule.is_over()) break;
      task = schedule.take();
    }
    if (!task) {
      take_notification(schedule);
      continue;
    }
    run_task(values, *task, queue);
    const std::lock_guard lock(schedule.mutex);
    schedule.finish(*task);
  }
  CHECK(gaspi_wait(queue, GASPI_BLOCK));
}

void verify(const double* mine) {
  const int all = ranks * rows + 2;
  std::vector<double> values(static_cast<std::size_t>(all) * columns);
  for (int i = 0; i < all; ++i)
    for (int j = 0; j < columns; ++j) values[static_cast<std::size_t>(i * columns + j)] = initial(i, j);
  for (int iteration = 0; iteration < iterations; ++iteration)
    for (int i = 1; i < all - 1; ++i)
      for (int block = 0; block < blocks; ++block) update(values.data(), i, i + 1, block);
  for (int i = 1; i <= rows; ++i)
    for (int j = 0; j < columns; ++j)
      expect_value(values[static_cast<std::size_t>((rank * rows + i) * columns + j)], mine[i * columns + j],
                   rank * rows + i, j);
}

}  // namespace

int main() {
  begin();
  double* const values = make_segment(field, (rows + 2) * columns);
  for (int i = 0; i < rows + 2; ++i)
    for (int j = 0; j < columns; ++j) values[i * columns + j] = initial(rank * rows + i, j);
  CHECK(gaspi_barrier(GASPI_GROUP_ALL, GASPI_BLOCK));  // no rank fills a halo that has come
  Schedule schedule;
  std::vector<std::thread> others;
  for (int thread = 1; thread < threads; ++thread)
    others.emplace_back([&, thread] { work(values, schedule, static_cast<gaspi_queue_id_t>(thread)); });
  work(values, schedule, 0);
  for (std::thread& each : others) each.join();
  verify(values);
  end();
  return EXIT_SUCCESS;
}
