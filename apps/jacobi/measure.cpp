// SPDX-License-Identifier: Apache-2.0
#include "measure.hpp"

#include <algorithm>
#include <optional>

#include "common/metered.hpp"
#include "common/program.hpp"
#include "common/reference.hpp"
#include "common/sampling.hpp"
#include "residual.hpp"
#include "serial.hpp"

namespace jacobi {

namespace {

using apps::Json;
using apps::median;
using apps::Sample;

constexpr int samples = 3;
constexpr double seconds_of_a_sample = 0.1;
constexpr int most_iterations = 1'000'000;
constexpr int phases = 1 + 2 * samples + 1;  // warm-up, runs with and without communication, verification

/// Few enough iterations that an error in any of them shows in the result: the field forgets errors as it converges.
int iterations_to_verify(const Size& size) {
  constexpr std::size_t fewest = 5, most = 64, updates = std::size_t{1} << 27;
  return static_cast<int>(std::clamp(updates / size.points(), fewest, most));
}

/// Whether the result equals that of the serial reference, which only rank 0 knows.
struct Verdict {
  bool good;
  double max_error;
};

/// Measurements of one method.
struct Outcome {
  int iterations = 0;
  std::optional<float> change;  ///< the last value that was read
  std::vector<Sample> with, without;
  std::optional<Verdict> verdict;
};

/// Measures methods on one grid.
class Session {
 public:
  Session(beeline::World& world, const Options& options, const Size& size)
      : world_(world), options_(options), metered_(world, options.energy_seconds), domain_(world, size) {
    if (options.until > 0) residual_.emplace(domain_);
    if (!options.verify || world.rank() != 0) return;
    reference_.emplace(size, apps::hardware_threads());
    reference_->advance(iterations_to_verify(size));
  }

  /// Collective. Returns whether the result was right.
  bool run(const MethodInfo& info) {
    apps::Progress progress(world_, info.name, phases);
    const std::unique_ptr<Method> method = info.make(domain_);
    Outcome outcome;
    warm_up(*method, outcome);
    progress.advance();
    for (int sample = 0; sample < samples; ++sample) {
      domain_.reset();
      outcome.with.push_back(apps::timed_run(world_, [&] { solve(*method, outcome); }));
      progress.advance();
    }
    for (int sample = 0; sample < samples; ++sample) {
      domain_.reset();
      outcome.without.push_back(apps::timed_run(world_, [&] { method->run(outcome.iterations, false); }));
      progress.advance();
    }
    if (options_.verify) outcome.verdict = verify(*method);
    progress.advance();
    print_result(info, *method, outcome);
    return !outcome.verdict || outcome.verdict->good;
  }

 private:
  /// Collective. Chooses the number of iterations of a timed run, or the largest number.
  void warm_up(Method& method, Outcome& outcome) {
    constexpr int trial = 10;
    domain_.reset();
    method.run(trial, true);
    const double seconds = apps::timed_run(world_, [&] { method.run(trial, true); }).seconds / trial;
    outcome.iterations = options_.iterations > 0 ? options_.iterations
                         : residual_             ? most_iterations
                                     : apps::runs_of_sample(seconds_of_a_sample, seconds, trial, most_iterations);
  }

  /// Collective. A timed run from initial data. Stores the number of its iterations in the outcome; every run takes the
  /// same number.
  void solve(Method& method, Outcome& outcome) {
    if (!residual_) return method.run(outcome.iterations, true);
    int done = 0;
    do {
      const int some = std::min(options_.every, outcome.iterations - done);
      method.run(some, true);
      done += some;
      outcome.change = residual_->max_change();
    } while (done < outcome.iterations && !converged(outcome));
    outcome.iterations = done;
  }

  [[nodiscard]] bool converged(const Outcome& outcome) const {
    return outcome.change && static_cast<double>(*outcome.change) <= options_.until;
  }

  /// Collective.
  Verdict verify(Method& method) {
    domain_.reset();
    method.run(iterations_to_verify(domain_.size()), true);
    const std::optional<float> change = residual_ ? std::optional(residual_->max_change()) : std::nullopt;
    const std::vector<float> field = domain_.gather();
    Verdict mine{true, 0};
    if (reference_) {
      mine.max_error = apps::max_error(reference_->field(), field);
      mine.good = apps::checksum(reference_->field()) == apps::checksum(field) &&
                  (!change || *change == reference_->max_change());
    }
    return apps::from_all(world_, mine).front();
  }

  void print_result(const MethodInfo& info, Method& method, const Outcome& outcome) {
    const Sample with = median(outcome.with), without = median(outcome.without);
    const double seconds = with.seconds / outcome.iterations;
    const auto points = static_cast<double>(domain_.size().points());
    Json line = apps::result_line("jacobi", info, world_);
    line.update({{"columns", domain_.size().columns},
                 {"rows", domain_.size().rows},
                 {"iterations", outcome.iterations},
                 {"seconds", seconds},
                 {"updates_per_second", points / seconds},
                 {"compute_seconds", without.seconds / outcome.iterations},
                 {"communication_share", (with.seconds - without.seconds) / with.seconds},
                 {"cpu_seconds", with.cpu_seconds / outcome.iterations}});
    line["max_change"] = outcome.change ? Json(*outcome.change) : Json();
    line["converged"] = residual_ ? Json(converged(outcome)) : Json();
    line["max_error"] = outcome.verdict ? Json(outcome.verdict->max_error) : Json();
    line["verified"] = outcome.verdict ? Json(outcome.verdict->good) : Json();
    line["verified_iterations"] = outcome.verdict ? Json(iterations_to_verify(domain_.size())) : Json();
    line["samples_seconds"] = apps::samples_seconds(outcome.with, outcome.iterations);
    metered_.add(line, "updates_per_joule", points * outcome.iterations, [&] {
      domain_.reset();
      method.run(outcome.iterations, true);
    });
    apps::print_line(world_.rank(), line);
  }

  beeline::World& world_;
  const Options& options_;
  apps::Metered metered_;
  Domain domain_;
  std::optional<Residual> residual_;
  std::optional<Serial> reference_;
};

}  // namespace

bool measure(beeline::World& world, const Options& options) {
  return apps::measure_on<Session>(world, options, options.sizes);
}

}  // namespace jacobi
