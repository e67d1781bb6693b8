// SPDX-License-Identifier: Apache-2.0
#include "measure.hpp"

#include <algorithm>
#include <optional>

#include "common/metered.hpp"
#include "common/program.hpp"
#include "common/reference.hpp"
#include "common/sampling.hpp"
#include "problem.hpp"
#include "serial.hpp"

namespace ring_reduction {

namespace {

using apps::Json;
using apps::Sample;

constexpr int samples = 3;
constexpr double seconds_of_a_sample = 0.25;
constexpr int phases = 1 + samples + 1;  // warm-up, timed runs, verification
constexpr std::uint32_t timed_set = 0;   // verification uses data sets from 1 on, one for each scheme

/// Whether the result equals that of the serial reference.
struct Verdict {
  int wrong_ranks = 0;   ///< ranks whose vector has other bits
  double max_error = 0;  ///< of rank 0
};

/// Timed runs of `reductions` reductions each; empty for a single rank, which has no work.
struct Timing {
  int reductions = 0;
  std::vector<Sample> all;
};

/// Measures schemes with one vector.
class Session {
 public:
  Session(beeline::World& world, const Options& options, std::size_t count, const Shape& shape)
      : world_(world), options_(options), metered_(world, options.energy_seconds), vectors_(world, count, shape) {}

  /// Collective. Returns whether the result was right.
  bool run(const SchemeInfo& info) {
    apps::Progress progress(world_, info.name, phases);
    const std::unique_ptr<Scheme> scheme = info.make(vectors_);
    Timing timing;
    if (world_.size() > 1) timing = time(progress, *scheme);
    std::optional<Verdict> verdict;
    if (options_.verify) verdict = verify(*scheme);
    progress.advance();
    print_result(info, *scheme, timing, verdict);
    return !verdict || verdict->wrong_ranks == 0;
  }

 private:
  /// Collective.
  Timing time(apps::Progress& progress, Scheme& scheme) {
    Timing timing;
    timing.reductions = options_.reductions > 0 ? options_.reductions : choose_reductions(scheme);
    progress.advance();
    for (int sample = 0; sample < samples; ++sample) {
      timing.all.push_back(timed_reductions(scheme, timing.reductions));
      progress.advance();
    }
    return timing;
  }

  /// Collective. Returns one sample. Each run has as many reductions as keep the values in range, and starts with fresh
  /// data; filling is not timed.
  Sample timed_reductions(Scheme& scheme, int reductions) {
    const int at_once = reductions_in_range(world_.size());
    Sample all{0, 0};
    for (int left = reductions; left > 0; left -= at_once) {
      vectors_.fill(timed_set);
      const Sample some = apps::timed_run(world_, [&] { scheme.run(std::min(left, at_once)); });
      all.seconds += some.seconds, all.cpu_seconds += some.cpu_seconds;
    }
    return all;
  }

  /// Collective. Chooses how many reductions a timed run has; also warms up.
  int choose_reductions(Scheme& scheme) {
    constexpr int fewest = 3, most = 100'000;
    static_cast<void>(timed_reductions(scheme, 1));
    const int trial = std::min(10, reductions_in_range(world_.size()));
    double seconds = timed_reductions(scheme, 1).seconds;
    if (seconds * trial < seconds_of_a_sample) seconds = timed_reductions(scheme, trial).seconds / trial;
    return apps::runs_of_sample(seconds_of_a_sample, seconds, fewest, most);
  }

  /// Collective. Reduces data that no other scheme has used, so that an earlier result cannot be taken for this one.
  Verdict verify(Scheme& scheme) {
    const int reductions = exact_reductions(world_.size());
    const std::uint32_t set = ++verified_;
    vectors_.fill(set);
    scheme.run(reductions);
    const std::vector<float> observed = vectors_.values();
    struct Message {
      std::uint64_t observed, expected;
      double max_error;
    } mine{checksum(observed), 0, 0};
    if (world_.rank() == 0) {
      const std::vector<float> expected =
          serial_reduction(vectors_.count(), world_.size(), set, reductions, apps::hardware_threads());
      mine.expected = checksum(expected);
      mine.max_error = max_error(expected, observed);
    }
    const std::vector<Message> all = apps::from_all(world_, mine);
    const auto wrong = [&](const Message& each) { return each.observed != all.front().expected; };
    return {static_cast<int>(std::ranges::count_if(all, wrong)), all.front().max_error};
  }

  void print_result(const SchemeInfo& info, Scheme& scheme, const Timing& timing,
                    const std::optional<Verdict>& verdict) {
    Json line = apps::result_line("ring_reduction", info, world_);
    add_shape(line, scheme);
    add_timing(line, timing);
    line["max_error"] = verdict ? Json(verdict->max_error) : Json();
    line["wrong_ranks"] = verdict ? Json(verdict->wrong_ranks) : Json();
    line["verified"] = verdict ? Json(verdict->wrong_ranks == 0) : Json();
    const int reductions = std::max(timing.reductions, 1);
    if (!timing.all.empty())
      metered_.add(line, "reductions_per_joule", reductions, [&] { timed_reductions(scheme, reductions); });
    apps::print_line(world_.rank(), line);
  }

  void add_shape(Json& line, const Scheme& scheme) const {
    const auto or_null = [](unsigned number) { return number > 0 ? Json(number) : Json(); };
    const Ring& ring = scheme.ring();
    line["bytes"] = vectors_.count() * sizeof(float);
    line["steps"] = ring.steps();
    line["chunks"] = ring.chunks;
    line["chunk_bytes"] = ring.chunk_elements * sizeof(float);
    line["lanes"] = or_null(scheme.lanes().lanes);
    line["blocks_of_lane"] = or_null(scheme.lanes().blocks);
    line["service_blocks"] = or_null(scheme.service_blocks());
    line["engine_threads"] = world_.config().engine_threads;
  }

  void add_timing(Json& line, const Timing& timing) const {
    for (const char* name : {"reductions", "seconds", "bus_bytes_per_second", "cpu_seconds", "samples_seconds"})
      line[name] = nullptr;
    if (timing.all.empty()) return;
    const Sample one = apps::median(timing.all);
    const double ranks = world_.size(), seconds = one.seconds / timing.reductions;
    line["reductions"] = timing.reductions;
    line["seconds"] = seconds;
    // As defined by nccl-tests: comparable with a link's bandwidth.
    line["bus_bytes_per_second"] =
        2 * (ranks - 1) / ranks * static_cast<double>(vectors_.count() * sizeof(float)) / seconds;
    line["cpu_seconds"] = one.cpu_seconds / timing.reductions;
    line["samples_seconds"] = apps::samples_seconds(timing.all, timing.reductions);
  }

  beeline::World& world_;
  const Options& options_;
  apps::Metered metered_;
  Vectors vectors_;
  std::uint32_t verified_ = timed_set;  ///< number of data sets used
};

}  // namespace

bool measure(beeline::World& world, const Options& options) {
  bool is_right = true;
  for (const std::size_t count : options.counts)
    for (const Shape& shape : options.shapes) {
      Session session(world, options, count, shape);
      for (const SchemeInfo& info : options.schemes) is_right &= session.run(info);
    }
  return is_right;
}

}  // namespace ring_reduction
