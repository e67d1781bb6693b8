// SPDX-License-Identifier: Apache-2.0
#include "harness/runner.hpp"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <tuple>
#include <utility>

#include "beeline/host/paths.hpp"
#include "environment/statistics.hpp"
#include "harness/energy.hpp"
#include "harness/record.hpp"

namespace beeline::bench {

namespace {

/// Long compared with the resolution of the GPU's clock (1 us at worst) and the cost of starting a batch.
constexpr double batch_ns = 2e6;
constexpr std::uint32_t batches_per_round = 5;

/// Untimed operations before the first batch. An operation that fills a batch alone needs only one.
constexpr std::uint32_t warm_up(std::uint32_t iterations) { return iterations > 1 ? 4 : 1; }

/// Cases that are measured in turns.
struct Task {
  std::vector<const Case*> todo;
  std::uint64_t bytes;
};

/// One task for each case. With `in_turns`, each task contains all methods of one operation and size, so that a method
/// and its peer are timed, or metered, at the same time.
std::vector<Task> tasks_of(const std::vector<Case>& cases, const std::vector<std::uint64_t>& sizes, bool in_turns) {
  std::vector<std::vector<const Case*>> groups;
  for (const Case& todo : cases) {
    const auto same = std::ranges::find_if(groups, [&](const auto& group) {
      return group.front()->operation == todo.operation && group.front()->sized == todo.sized;
    });
    if (in_turns && same != groups.end())
      same->push_back(&todo);
    else
      groups.push_back({&todo});
  }
  std::vector<Task> tasks;
  for (const std::vector<const Case*>& todo : groups) {
    if (!todo.front()->sized) tasks.push_back({todo, 0});
    for (std::uint64_t bytes : sizes)
      if (todo.front()->sized) tasks.push_back({todo, bytes});
  }
  return tasks;
}

/// Number of iterations whose batch lasts about `batch_ns`. The fastest of some batches counts, so that a method does
/// not seem slow because a rank lost its core for a while.
std::uint32_t calibrate(Bench& bench, const Measurement& measurement, std::uint32_t iterations) {
  if (bench.options().iterations != 0)
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(bench.options().iterations, measurement.most_iterations));
  for (;;) {
    const std::vector<double> times = measurement.time({iterations, batches_per_round, warm_up(iterations)});
    double wanted = iterations;
    if (bench.leads()) {
      const double quickest = std::max(*std::min_element(times.begin(), times.end()), 1.0);
      if (quickest < batch_ns / 2)
        wanted = std::min(
            {iterations * batch_ns / quickest, iterations * 16.0, static_cast<double>(measurement.most_iterations)});
    }
    const auto next = static_cast<std::uint32_t>(bench.from_leader(static_cast<std::uint64_t>(wanted)));
    if (next <= iterations) return iterations;
    iterations = next;
  }
}

/// The sample that a batch's time gives.
double sample_of(const Measurement& measurement, std::uint32_t iterations, double ns) {
  const double operations = measurement.operations_per_iteration * iterations;
  switch (measurement.unit) {
    case Unit::microseconds:
      return ns / operations / 1e3;
    case Unit::gigabytes_per_second:
      return static_cast<double>(measurement.bytes) * operations / ns;
    case Unit::million_messages_per_second:
      return operations / ns * 1e3;
    case Unit::giga_updates_per_second:
      return operations / ns;
    case Unit::requests:
      return ns / operations;
  }
  return 0;
}

double seconds(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// Times batches, and the CPU time that they take.
std::vector<double> time(const Measurement& measurement, const Rounds& rounds, Outcome& outcome) {
  const double cpu = seconds(CLOCK_PROCESS_CPUTIME_ID), wall = seconds(CLOCK_MONOTONIC);
  std::vector<double> times = measurement.time(rounds);
  outcome.cpu_s += seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
  outcome.wall_s += seconds(CLOCK_MONOTONIC) - wall;
  return times;
}

/// Prints which task runs and, in a long task, every few seconds the current method.
class Progress {
 public:
  Progress(const Bench& bench, const Task& task, std::size_t done, std::size_t total)
      : leads_(bench.leads()), task_(task), done_(done), total_(total) {
    tell(task.todo.front()->method);
  }

  void at(const Measurement& measurement) {
    constexpr std::chrono::seconds period{5};
    if (std::chrono::steady_clock::now() - last_ >= period) tell(measurement.method);
  }

 private:
  void tell(const std::string& method) {
    last_ = std::chrono::steady_clock::now();
    if (leads_) print(progress_record(task_.todo.front()->operation, method, task_.bytes, done_, total_));
  }

  const bool leads_;
  const Task& task_;
  const std::size_t done_, total_;
  std::chrono::steady_clock::time_point last_;
};

/// Samples the measurements that still need samples in turns, so that a drift of the machine affects all of them.
void sample(Bench& bench, const std::vector<Measurement>& measurements, std::vector<Outcome>& outcomes,
            Progress& progress) {
  StopRule enough;
  if (bench.options().energy_ms != 0) enough.longest_ns = 1e8;  // the samples only choose what is metered
  std::vector<std::size_t> left(measurements.size());
  std::iota(left.begin(), left.end(), std::size_t{0});
  while (!left.empty()) {
    std::vector<std::size_t> unfinished;
    for (std::size_t i : left) {
      progress.at(measurements[i]);
      const Rounds rounds{outcomes[i].iterations, batches_per_round, warm_up(outcomes[i].iterations)};
      const std::vector<double> times = time(measurements[i], rounds, outcomes[i]);
      if (bench.leads())
        for (double ns : times) outcomes[i].samples.push_back(sample_of(measurements[i], rounds.iterations, ns));
      const bool is_enough = !bench.leads() || enough.satisfied(outcomes[i].samples, outcomes[i].wall_s * 1e9);
      if (bench.from_leader(is_enough) == 0) unfinished.push_back(i);
    }
    left = std::move(unfinished);
  }
}

void verify(Bench& bench, const std::vector<Measurement>& measurements, std::vector<Outcome>& outcomes) {
  for (std::size_t i = 0; i < measurements.size(); ++i) {
    if (!measurements[i].verify) continue;
    outcomes[i].seed = bench.options().seed != 0 ? bench.options().seed : std::random_device{}();
    outcomes[i].seed = bench.from_leader(outcomes[i].seed);
    outcomes[i].verified = bench.everywhere(measurements[i].verify(outcomes[i].seed));
  }
}

void print_results(Bench& bench, const std::vector<Measurement>& measurements, const std::vector<Outcome>& outcomes) {
  for (std::size_t i = 0; i < measurements.size(); ++i) {
    const auto& baseline = measurements[i].baseline;
    print(result_record(measurements[i], outcomes[i], bench.world().size(),
                        baseline ? &measurements[*baseline] : nullptr, baseline ? &outcomes[*baseline] : nullptr));
  }
}

void check_size(const Case& todo, std::uint64_t bytes) {
  const auto [least, most] = todo.sizes;
  require(bytes >= least, Status::unavailable, fmt::format("measured with {} bytes and more", least));
  require(bytes <= most, Status::unavailable, fmt::format("measured with up to {} bytes", most));
}

/// The measurements at `indices`, in that order. If a baseline is not among them, another setting of its method
/// replaces it.
std::vector<Measurement> kept(std::vector<Measurement> all, const std::vector<std::size_t>& indices) {
  const auto index_for = [&](std::size_t baseline) -> std::optional<std::size_t> {
    for (std::size_t i = 0; i < indices.size(); ++i)
      if (indices[i] == baseline) return i;
    for (std::size_t i = 0; i < indices.size(); ++i)
      if (all[indices[i]].method == all[baseline].method) return i;
    return std::nullopt;
  };
  for (const std::size_t i : indices)
    if (all[i].baseline) all[i].baseline = index_for(*all[i].baseline);
  std::vector<Measurement> left;
  for (const std::size_t i : indices) left.push_back(std::move(all[i]));
  return left;
}

/// The measurements without those that would store to memory which this rank's device does not reach as its own: on
/// another node, or on a GPU without peer access.
std::vector<Measurement> reached(Bench& bench, std::vector<Measurement> all) {
  World& world = bench.world();
  const int peer = static_cast<int>(bench.peer());
  const auto reach = [&](int rank) { return path_to(world, rank).operations; };
  const bool is_direct = peer >= world.size() || reach(peer) == reach(world.rank());
  if (bench.from_leader(is_direct ? 1 : 0) != 0) return all;
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (!all[i].stores_to_peer) indices.push_back(i);
  return kept(std::move(all), indices);
}

/// The measurements without peers that cannot be measured, whose reasons are printed.
std::vector<Measurement> without_lacking(const Bench& bench, std::vector<Measurement> all) {
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Measurement& one = all[i];
    if (one.lacking.empty())
      indices.push_back(i);
    else if (bench.leads())
      print(unavailable_record({one.operation, one.method, true, {}}, one.bytes, bench.world().size(), one.lacking));
  }
  return kept(std::move(all), indices);
}

/// Sorts measurements in the order in which the options name their methods: if time is short, the last ones are not
/// metered. Bare peers come before the methods that are compared with them.
void sort_as_asked(const Options& options, const std::vector<Measurement>& measurements,
                   std::vector<std::size_t>& indices) {
  std::ranges::sort(indices, {}, [&](std::size_t index) {
    const Measurement& one = measurements[index];
    const auto named = std::ranges::find(options.methods, one.peer_of.value_or(one.method));
    return std::tuple(named - options.methods.begin(), !one.peer_of.has_value(), index);
  });
}

/// Keeps the fastest setting of each method: only that is metered; the others served to find it.
void keep_quickest(Bench& bench, std::vector<Measurement>& measurements, std::vector<Outcome>& outcomes) {
  std::vector<std::size_t> chosen, indices;
  if (bench.leads()) chosen = quickest(measurements, outcomes);
  sort_as_asked(bench.options(), measurements, chosen);
  for (std::uint64_t at = 0, count = bench.from_leader(chosen.size()); at < count; ++at)
    indices.push_back(bench.from_leader(bench.leads() ? chosen[at] : 0));
  std::vector<Outcome> left;
  for (const std::size_t i : indices) left.push_back(std::move(outcomes[i]));
  outcomes = std::move(left);
  measurements = kept(std::move(measurements), indices);
}

/// Prepares the measurements. If the machine lacks what they need, or the case was named but does not have the size,
/// prints the reason and returns none.
std::vector<Measurement> prepare(Bench& bench, const Case& todo, std::uint64_t bytes) {
  std::vector<Measurement> measurements;
  std::string reason;
  if (!todo.sizes.holds(bytes) && !bench.options().methods_are_named) return {};
  try {
    check_size(todo, bytes);
    measurements = todo.prepare(bench, bytes);
  } catch (const Error& error) {
    const bool lacking = error.code() == Status::unavailable || error.code() == Status::unreachable ||
                         error.code() == Status::no_resource;
    if (!lacking) throw;
    reason = error.what();
  }
  reason = bench.first_error(reason);
  if (!reason.empty()) measurements.clear();
  bench.let_go();
  if (reason.empty()) return reached(bench, without_lacking(bench, std::move(measurements)));
  if (bench.leads()) print(unavailable_record(todo, bytes, bench.world().size(), reason));
  return measurements;
}

/// Compares each collective with the fastest peer that is called in the same way.
void choose_baselines(std::vector<Measurement>& measurements, const std::vector<Outcome>& outcomes) {
  for (Measurement& one : measurements) {
    if (one.compared_as.empty() || one.peer_of) continue;
    for (std::size_t i = 0; i < measurements.size(); ++i) {
      if (!measurements[i].peer_of || measurements[i].compared_as != one.compared_as) continue;
      if (!one.baseline || median(outcomes[i].samples) < median(outcomes[*one.baseline].samples)) one.baseline = i;
    }
  }
}

/// The measurements of all cases of a task.
std::vector<Measurement> prepare_all(Bench& bench, const Task& task) {
  std::vector<Measurement> measurements;
  for (const Case* todo : task.todo) {
    const std::size_t first = measurements.size();
    for (Measurement& measurement : prepare(bench, *todo, task.bytes)) {
      if (measurement.baseline) *measurement.baseline += first;
      measurements.push_back(std::move(measurement));
    }
  }
  return measurements;
}

/// Runs the task, and returns the methods whose data was wrong.
std::vector<std::string> run_task(Bench& bench, const std::vector<Task>& tasks, std::size_t index,
                                  EnergyBench* energy) {
  const Task& task = tasks[index];
  Progress progress(bench, task, index, tasks.size());
  std::vector<Measurement> measurements = prepare_all(bench, task);
  if (measurements.empty()) return {};
  std::vector<Outcome> outcomes(measurements.size());
  for (Outcome& outcome : outcomes) outcome.iterations = 1;
  // Calibrates twice: the first calls touch memory for the first time, and may have run while the ranks shared a core.
  for (std::size_t i = 0; i < 2 * measurements.size(); ++i) {
    const std::size_t which = i % measurements.size();
    progress.at(measurements[which]);
    outcomes[which].iterations = calibrate(bench, measurements[which], outcomes[which].iterations);
  }
  sample(bench, measurements, outcomes, progress);
  if (energy != nullptr) keep_quickest(bench, measurements, outcomes);
  if (bench.options().verify) verify(bench, measurements, outcomes);
  if (bench.leads()) {
    choose_baselines(measurements, outcomes);
    print_results(bench, measurements, outcomes);
  }
  if (energy != nullptr) energy->run(measurements, outcomes, index, tasks.size());
  std::vector<std::string> wrong;
  for (std::size_t i = 0; i < outcomes.size(); ++i)
    if (!outcomes[i].verified.value_or(true)) wrong.push_back(measurements[i].method);
  return wrong;
}

}  // namespace

void run_cases(Bench& bench, const std::vector<Case>& cases) {
  const std::vector<std::uint64_t> sizes = sizes_of(bench.options(), bench.world().device(0).is_gpu());
  const auto energy = bench.options().energy_ms == 0 ? nullptr : std::make_unique<EnergyBench>(bench);
  const bool in_turns = energy != nullptr || bench.options().command == Command::collectives;
  const std::vector<Task> tasks = tasks_of(cases, sizes, in_turns);
  std::string wrong;
  for (std::size_t i = 0; i < tasks.size(); ++i)
    for (const std::string& method : run_task(bench, tasks, i, energy.get()))
      wrong += fmt::format("\n  {} {} of {} bytes", method, tasks[i].todo.front()->operation, tasks[i].bytes);
  require(wrong.empty(), Status::internal, "data did not arrive as it was sent:" + wrong);
}

}  // namespace beeline::bench
