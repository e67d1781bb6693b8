// SPDX-License-Identifier: Apache-2.0
#include "measure.hpp"

#include <algorithm>
#include <optional>

#include "common/metered.hpp"
#include "common/program.hpp"
#include "common/sampling.hpp"

namespace tree_search {

namespace {

using apps::Json;
using apps::Sample;

constexpr int samples = 3;
constexpr double seconds_of_a_sample = 0.25;

/// Measures methods with one tree.
class Session {
 public:
  Session(beeline::World& world, const Options& options)
      : world_(world), options_(options), metered_(world, options.energy_seconds), problem_(world, options.tree) {
    if (options.verify && world.rank() == 0) expected_ = serial_search(options.tree);
  }

  /// Collective. Returns whether the counts were right.
  bool run(const MethodInfo& info) {
    apps::Progress progress(world_, info.name, 1 + samples);
    const std::unique_ptr<Method> method = info.make(problem_);
    const Counts counts = warm_up(*method);
    const int searches = options_.searches > 0 ? options_.searches : choose_searches(*method);
    progress.advance();
    std::vector<Sample> all;
    for (int sample = 0; sample < samples; ++sample) {
      all.push_back(timed(*method, searches));
      progress.advance();
    }
    // Each of the timed searches has added the same counts.
    const Counts sum = problem_.take_counts();
    const auto timed_searches = static_cast<std::uint64_t>(samples) * static_cast<std::uint64_t>(searches);
    const bool is_right =
        world_.allreduce(std::uint64_t{is_expected(counts) && sum.nodes == timed_searches * counts.nodes ? 0u : 1u}) ==
        0;
    print_result(info, *method, counts, all, searches, is_right);
    return is_right || !options_.verify;
  }

 private:
  Counts warm_up(Method& method) {
    method.search();
    return problem_.take_counts();
  }
  [[nodiscard]] bool is_expected(const Counts& counts) const { return !expected_ || *expected_ == counts; }

  Sample timed(Method& method, int searches) {
    return apps::timed_run(world_, [&] {
      for (int i = 0; i < searches; ++i) method.search();
    });
  }
  int choose_searches(Method& method) {
    constexpr int fewest = 1, most = 1000;
    const double seconds = timed(method, 1).seconds;
    static_cast<void>(problem_.take_counts());
    return apps::runs_of_sample(seconds_of_a_sample, seconds, fewest, most);
  }

  void print_result(const MethodInfo& info, Method& method, const Counts& counts, const std::vector<Sample>& all,
                    int searches, bool is_right) {
    Json line = apps::result_line("tree_search", info, world_);
    const Sample one = apps::median(all);
    const double seconds = one.seconds / searches;
    line["nodes"] = counts.nodes;
    line["leaves"] = counts.leaves;
    line["deepest"] = counts.deepest;
    line["searches"] = searches;
    line["seconds"] = seconds;
    line["nodes_per_second"] = static_cast<double>(counts.nodes) / seconds;
    line["cpu_seconds"] = one.cpu_seconds / searches;
    line["samples_seconds"] = apps::samples_seconds(all, searches);
    line["verified"] = options_.verify ? Json(is_right) : Json();
    metered_.add(line, "searches_per_joule", searches, [&] { timed(method, searches); });
    static_cast<void>(problem_.take_counts());
    apps::print_line(world_.rank(), line);
  }

  beeline::World& world_;
  const Options& options_;
  apps::Metered metered_;
  Problem problem_;
  std::optional<Counts> expected_;  ///< on rank 0, if it verifies
};

}  // namespace

bool measure(beeline::World& world, const Options& options) {
  Session session(world, options);
  bool all_right = true;
  for (const MethodInfo& info : options.methods) all_right &= session.run(info);
  return all_right;
}

}  // namespace tree_search
