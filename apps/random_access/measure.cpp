// SPDX-License-Identifier: Apache-2.0
#include "measure.hpp"

#include <algorithm>
#include <optional>

#include "common/metered.hpp"
#include "common/program.hpp"
#include "common/sampling.hpp"

namespace random_access {

namespace {

using apps::Json;
using apps::Sample;

constexpr int samples = 3;
constexpr double seconds_of_a_sample = 1;
constexpr int phases = 1 + samples + 1;  // warm-up, timed runs, verification

/// Measurements of one method.
struct Outcome {
  Run run;
  std::vector<Sample> all;
  std::optional<std::uint64_t> errors;
};

/// Measures methods with one table.
class Session {
 public:
  Session(beeline::World& world, const Options& options, const Layout& layout)
      : world_(world), options_(options), metered_(world, options.energy_seconds), table_(world, layout) {}

  /// Collective. Returns whether the table was right.
  bool run(const MethodInfo& info) {
    apps::Progress progress(world_, info.name, phases);
    const std::unique_ptr<Method> method = info.make(table_);
    table_.fill();
    Outcome outcome{run_of(table_.layout(), choose_divisor(*method)), {}, {}};
    progress.advance();
    for (int sample = 0; sample < samples; ++sample) {
      table_.fill();  // so that the last timed run is verified
      outcome.all.push_back(apps::timed_run(world_, [&] { method->run(outcome.run); }));
      progress.advance();
    }
    if (options_.verify) outcome.errors = table_.errors(outcome.run);
    progress.advance();
    print_result(info, *method, outcome);
    return outcome.errors.value_or(0) == 0;
  }

 private:
  /// Collective. Chooses how many of the updates a timed run makes: the smallest power of two as divisor with which it
  /// takes at most about a second. Also warms up.
  std::uint64_t choose_divisor(Method& method) {
    constexpr std::uint64_t first_updates = std::uint64_t{1} << 17;
    const auto seconds_of = [&](std::uint64_t divisor) {
      const Run run = run_of(table_.layout(), divisor);
      return apps::timed_run(world_, [&] { method.run(run); }).seconds;
    };
    std::uint64_t divisor = options_.divisor > 0
                                ? static_cast<std::uint64_t>(options_.divisor)
                                : std::max<std::uint64_t>(run_of(table_.layout()).updates / first_updates, 1);
    double seconds = seconds_of(divisor);
    if (options_.divisor > 0) return divisor;
    for (; divisor > 1 && seconds < seconds_of_a_sample / 8; seconds = seconds_of(divisor))
      divisor = std::max<std::uint64_t>(divisor / 8, 1);
    for (; divisor > 1 && 2 * seconds < seconds_of_a_sample; seconds *= 2) divisor /= 2;
    return divisor;
  }

  void print_result(const MethodInfo& info, Method& method, const Outcome& outcome) {
    const Sample one = apps::median(outcome.all);
    const std::uint64_t updates = updates_of(outcome.run, world_.size());
    const auto some = static_cast<double>(updates);
    Json line = apps::result_line("random_access", info, world_);
    line.update({{"words", table_.layout().words()},
                 {"updates", updates},
                 {"update_share", some / static_cast<double>(outcome.run.updates)},
                 {"seconds", one.seconds},
                 {"updates_per_second", some / one.seconds},
                 {"cpu_seconds", one.cpu_seconds}});
    line["errors"] = outcome.errors ? Json(*outcome.errors) : Json();
    line["verified"] = outcome.errors ? Json(*outcome.errors == 0) : Json();
    line["samples_seconds"] = apps::samples_seconds(outcome.all);
    metered_.add(line, "updates_per_joule", some, [&] { method.run(outcome.run); });
    apps::print_line(world_.rank(), line);
  }

  beeline::World& world_;
  const Options& options_;
  apps::Metered metered_;
  Table table_;
};

}  // namespace

bool measure(beeline::World& world, const Options& options) {
  return apps::measure_on<Session>(world, options, options.tables);
}

}  // namespace random_access
