// SPDX-License-Identifier: Apache-2.0
#include "measure.hpp"

#include <algorithm>

#include "common/metered.hpp"
#include "common/program.hpp"
#include "common/reference.hpp"
#include "common/sampling.hpp"
#include "problem.hpp"

namespace global_reduction {

namespace {

using apps::Json;
using apps::Sample;

constexpr int samples = 3;
constexpr double seconds_of_a_sample = 0.1;
constexpr int phases = 1 + samples + 1;  // warm-up, timed runs, verification

/// A method's result and that of the serial reference, which is known on rank 0 only.
struct Verdict {
  double sum = 0, reference = 0;
  int wrong_ranks = 0;
};

/// Measurements of one method.
struct Outcome {
  std::vector<Sample> all;
  Verdict verdict;
};

/// Measures methods with one number of values.
class Session {
 public:
  Session(beeline::World& world, const Options& options, std::size_t count)
      : world_(world), options_(options), metered_(world, options.energy_seconds), values_(world, count) {}

  /// Collective. Returns whether the result was right.
  bool run(const MethodInfo& info) {
    apps::Progress progress(world_, info.name, phases);
    const std::unique_ptr<Method> method = info.make(values_);
    values_.fill(data_set_);
    const int reductions = options_.reductions > 0 ? options_.reductions : choose_reductions(*method);
    progress.advance();
    std::vector<Sample> all;
    for (int sample = 0; sample < samples; ++sample) {
      all.push_back(apps::timed_run(world_, [&] { method->run(reductions); }));
      progress.advance();
    }
    const Verdict verdict = verify(*method);
    progress.advance();
    print_result(info, *method, reductions, {all, verdict});
    return verdict.wrong_ranks == 0;
  }

 private:
  /// Collective. Chooses how many reductions a timed run has; also warms up.
  int choose_reductions(Method& method) {
    constexpr int fewest = 3, most = 1'000'000, trial = 10;
    method.run(trial);
    const double seconds = apps::timed_run(world_, [&] { method.run(trial); }).seconds / trial;
    return apps::runs_of_sample(seconds_of_a_sample, seconds, fewest, most);
  }

  /// Collective. Two reductions of different data: the second fails if it reads a result of the first.
  Verdict verify(Method& method) {
    values_.fill(++data_set_);
    method.run(1);
    values_.fill(++data_set_);
    method.run(1);
    struct Message {
      double sum, reference;
    } mine{values_.total(), 0};
    if (world_.rank() == 0)
      mine.reference = serial_sum(values_.count(), world_.size(), data_set_, apps::hardware_threads());
    const std::vector<Message> all = apps::from_all(world_, mine);
    const auto wrong = [&](const Message& each) { return each.sum != all.front().reference; };
    return {all.front().sum, all.front().reference, static_cast<int>(std::ranges::count_if(all, wrong))};
  }

  void print_result(const MethodInfo& info, Method& method, int reductions, const Outcome& outcome) {
    const auto& [all, verdict] = outcome;
    const Sample one = apps::median(all);
    const double seconds = one.seconds / reductions;
    Json line = apps::result_line("global_reduction", info, world_);
    line.update({{"values", values_.count()},
                 {"reductions", reductions},
                 {"seconds", seconds},
                 {"reductions_per_second", 1 / seconds},
                 {"cpu_seconds", one.cpu_seconds / reductions},
                 {"sum", verdict.sum},
                 {"reference", verdict.reference},
                 {"wrong_ranks", verdict.wrong_ranks},
                 {"verified", verdict.wrong_ranks == 0},
                 {"samples_seconds", apps::samples_seconds(all, reductions)}});
    metered_.add(line, "reductions_per_joule", reductions, [&] { method.run(reductions); });
    apps::print_line(world_.rank(), line);
  }

  beeline::World& world_;
  const Options& options_;
  apps::Metered metered_;
  Values values_;
  std::uint32_t data_set_ = 0;
};

}  // namespace

bool measure(beeline::World& world, const Options& options) {
  return apps::measure_on<Session>(world, options, options.counts);
}

}  // namespace global_reduction
