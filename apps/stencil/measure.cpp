// SPDX-License-Identifier: Apache-2.0
#include "measure.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

#include "common/program.hpp"
#include "common/reference.hpp"
#include "common/sampling.hpp"
#include "serial.hpp"

namespace stencil {

namespace {

using apps::Json;
using apps::median;
using apps::Sample;

constexpr int samples = 3;
constexpr double seconds_of_a_sample = 0.1;
constexpr int most_steps = 1'000'000;
constexpr int phases = 1 + samples + 1;  // warm-up, runs, verification

/// Few enough steps that an error in any of them shows in the result: the field forgets errors as it converges.
int steps_to_verify(const Size& size) {
  constexpr std::size_t fewest = 5, most = 64, updates = std::size_t{1} << 26;
  return static_cast<int>(std::clamp(updates / size.points(), fewest, most));
}

/// Measurements of one method.
struct Outcome {
  int steps = 0;
  std::vector<Sample> with, without;
  std::optional<double> max_error;
  std::optional<bool> verified;
};

/// Measures methods on one volume.
class Session {
 public:
  Session(const apps::Devices& devices, const Options& options, const Size& size)
      : setup_{devices, size}, options_(options) {
    if (!options.verify) return;
    reference_.emplace(size, apps::hardware_threads());
    reference_->advance(steps_to_verify(size));
  }

  /// Returns whether the result was right.
  bool run(const MethodInfo& info) {
    apps::Progress progress(info.name, phases);
    const std::unique_ptr<Method> method = info.make(setup_);
    Outcome outcome;
    warm_up(*method, outcome);
    progress.advance();
    for (int sample = 0; sample < samples; ++sample) {
      outcome.with.push_back(timed(*method, outcome.steps, true));
      outcome.without.push_back(timed(*method, outcome.steps, false));
      progress.advance();
    }
    if (reference_) verify(*method, outcome);
    progress.advance();
    print_result(info, outcome);
    return outcome.verified.value_or(true);
  }

 private:
  static Sample timed(Method& method, int steps, bool communicate) {
    method.reset();
    return apps::timed_run([&] { method.run(steps, communicate); });
  }

  /// Chooses the number of steps of a timed run.
  void warm_up(Method& method, Outcome& outcome) const {
    constexpr int trial = 5;
    method.reset();
    method.run(trial, true);
    const double seconds = apps::timed_run([&] { method.run(trial, true); }).seconds / trial;
    outcome.steps =
        options_.steps > 0 ? options_.steps : apps::runs_of_sample(seconds_of_a_sample, seconds, trial, most_steps);
  }

  void verify(Method& method, Outcome& outcome) const {
    method.reset();
    // Two runs: the second one goes on where the first one ended.
    const int steps = steps_to_verify(setup_.size), some = steps / 2;
    method.run(some, true);
    method.run(steps - some, true);
    const std::vector<float> field = method.gather();
    const std::vector<float>& expected = reference_->field();
    outcome.verified = field.size() == expected.size() &&
                       std::memcmp(field.data(), expected.data(), field.size() * sizeof(float)) == 0;
    outcome.max_error = *outcome.verified ? 0 : apps::max_error(expected, field);
  }

  void print_result(const MethodInfo& info, const Outcome& outcome) const {
    const Sample with = median(outcome.with), without = median(outcome.without);
    const double seconds = with.seconds / outcome.steps;
    const Size& size = setup_.size;
    Json line = apps::result_line("stencil", info, setup_.devices);
    line.update({{"size", {size.x, size.y, size.z}},
                 {"halo_bytes", size.halo_bytes()},
                 {"steps", outcome.steps},
                 {"seconds", seconds},
                 {"updates_per_second", static_cast<double>(size.points()) / seconds},
                 {"compute_seconds", without.seconds / outcome.steps},
                 {"communication_share", (with.seconds - without.seconds) / with.seconds},
                 {"cpu_seconds", with.cpu_seconds / outcome.steps}});
    line["max_error"] = outcome.max_error ? Json(*outcome.max_error) : Json();
    line["verified"] = outcome.verified ? Json(*outcome.verified) : Json();
    line["verified_steps"] = outcome.verified ? Json(steps_to_verify(size)) : Json();
    line["samples_seconds"] = apps::samples_seconds(outcome.with, outcome.steps);
    apps::print_line(0, line);
  }

  Setup setup_;
  const Options& options_;
  std::optional<Serial> reference_;
};

}  // namespace

bool measure(const apps::Devices& devices, const Options& options) {
  return apps::measure_on<Session>(devices, options, options.sizes);
}

}  // namespace stencil
