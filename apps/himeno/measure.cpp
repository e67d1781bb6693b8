// SPDX-License-Identifier: Apache-2.0
#include "measure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "bound_share.hpp"
#include "common/copy_bandwidth.hpp"
#include "common/metered.hpp"
#include "common/program.hpp"
#include "common/sampling.hpp"
#include "verify.hpp"

namespace himeno {

namespace {

using apps::Json;
using apps::median;
using apps::Sample;

constexpr int samples = 3;
constexpr int warm_up_iterations = 3;
constexpr int fresh_iterations = 5;
constexpr double seconds_of_a_sample = 1.0 / samples;
constexpr double seconds_of_reference = 4;
constexpr int phases = 1 + 2 * samples + 1;  // warm-up, runs with and without communication, verification

/// Collective. One run of `iterations` from initial data.
Sample timed_run(Domain& domain, Method& method, int iterations, bool communicate) {
  domain.reset(Data::official);
  return apps::timed_run(domain.world(), [&] { method.run(iterations, communicate); });
}

/// Collective. Chooses the number of iterations so that a run takes about `seconds_of_a_sample`.
int choose_iterations(Domain& domain, const MethodInfo& info) {
  constexpr int fewest = 10, most = 1'000'000;
  const std::unique_ptr<Method> method = info.make(domain);
  static_cast<void>(timed_run(domain, *method, fewest, true));
  const double seconds = timed_run(domain, *method, fewest, true).seconds / fewest;
  return apps::runs_of_sample(seconds_of_a_sample, seconds, fewest, most);
}

/// Measurements of one method.
struct Outcome {
  std::vector<Sample> with, without;
  std::vector<double> launches;  ///< seconds of this rank's CPU, by sample; empty: see Method::launch_seconds
  double gosa = 0;
  std::string checksum;
  std::optional<Comparison> official, fresh;
  [[nodiscard]] bool good() const { return !official || (official->good() && fresh->good()); }
};

/// Measures methods on one domain.
class Session {
 public:
  Session(beeline::World& world, const Options& options)
      : world_(world), options_(options), metered_(world, options.energy_seconds),
        copy_bandwidth_(apps::copy_bandwidth(world)), domain_(world, options.size),
        iterations_(options.iterations > 0 ? options.iterations : choose_iterations(domain_, options.methods.front())) {
    if (!options.verify) return;
    official_ = expect(world, options.size, Data::official, iterations_, seconds_of_reference);
    fresh_ = expect(world, options.size, Data::scrambled, fresh_iterations, seconds_of_reference);
  }

  /// Collective. Returns whether the results were right.
  bool run(const MethodInfo& info) {
    apps::Progress progress(world_, info.name, phases);
    const std::unique_ptr<Method> method = info.make(domain_);
    domain_.reset(Data::official);
    method->run(warm_up_iterations, true);
    method->run(warm_up_iterations, false);
    progress.advance();
    Outcome outcome;
    for (int sample = 0; sample < samples; ++sample) {
      outcome.with.push_back(timed_run(domain_, *method, iterations_, true));
      if (const auto seconds = method->launch_seconds()) outcome.launches.push_back(*seconds);
      progress.advance();
    }
    outcome.gosa = domain_.gosa();
    if (options_.verify) check_official(*method, outcome);
    for (int sample = 0; sample < samples; ++sample) {
      outcome.without.push_back(timed_run(domain_, *method, iterations_, false));
      progress.advance();
    }
    if (options_.verify) check_fresh(*method, outcome);
    progress.advance();
    print_result(info, *method, outcome);
    return outcome.good();
  }

 private:
  /// Checks the timed run itself if the reference could compute as many iterations, otherwise a shorter run.
  void check_official(Method& method, Outcome& outcome) {
    std::vector<float> field = domain_.gather(iterations_);
    if (world_.rank() == 0) outcome.checksum = fmt::format("{:016x}", checksum(field));
    double gosa = outcome.gosa;
    if (official_.iterations < iterations_) {
      domain_.reset(Data::official);
      method.run(official_.iterations, true);
      gosa = domain_.gosa();
      field = domain_.gather(official_.iterations);
    }
    outcome.official = world_.rank() == 0 ? compare(official_, field, gosa) : Comparison{};
  }

  void check_fresh(Method& method, Outcome& outcome) {
    domain_.reset(Data::scrambled);
    method.run(fresh_.iterations, true);
    const double gosa = domain_.gosa();
    const std::vector<float> field = domain_.gather(fresh_.iterations);
    outcome.fresh = world_.rank() == 0 ? compare(fresh_, field, gosa) : Comparison{};
  }

  void print_result(const MethodInfo& info, Method& method, const Outcome& outcome) {
    const Sample with = median(outcome.with), without = median(outcome.without);
    Json line = apps::result_line("himeno", info, world_);
    line["size"] = {options_.size.x, options_.size.y, options_.size.z};
    line.update({{"iterations", iterations_},
                 {"seconds", with.seconds},
                 {"mflops", options_.size.flop() * iterations_ / with.seconds * 1e-6},
                 {"communication_share", (with.seconds - without.seconds) / with.seconds},
                 {"overlap_efficiency", without.seconds / with.seconds},
                 {"compute_seconds", without.seconds}});
    const auto share = bound_share(options_.size, iterations_ / with.seconds, copy_bandwidth_);
    line["copy_bytes_per_second"] = copy_bandwidth_ ? Json(*copy_bandwidth_) : Json();
    line["bound_share"] = share ? Json(*share) : Json();
    line["gosa"] = outcome.gosa;
    add_verification(line, outcome);
    line["cpu_seconds"] = with.cpu_seconds;
    std::vector<double> launches = outcome.launches;
    std::ranges::sort(launches);
    line["launch_seconds"] = launches.empty() ? Json() : Json(launches[launches.size() / 2]);
    line["samples_seconds"] = apps::samples_seconds(outcome.with);
    metered_.add(line, "mflop_per_joule", options_.size.flop() * iterations_ * 1e-6,
                 [&] { method.run(iterations_, true); });
    apps::print_line(world_.rank(), line);
  }

  void add_verification(Json& line, const Outcome& outcome) const {
    for (const char* name : {"max_error", "gosa_reference", "gosa_float32", "verified", "verified_iterations",
                             "fresh_max_error", "field_checksum"})
      line[name] = nullptr;
    if (!outcome.official) return;
    line["max_error"] = outcome.official->max_error;
    line["gosa_reference"] = official_.gosa;
    line["gosa_float32"] = official_.gosa_float32;
    line["verified"] = outcome.good();
    line["verified_iterations"] = official_.iterations;
    line["fresh_max_error"] = outcome.fresh->max_error;
    line["field_checksum"] = outcome.checksum;
  }

  beeline::World& world_;
  const Options& options_;
  apps::Metered metered_;
  std::optional<double> copy_bandwidth_;  ///< measured before the arrays take the memory
  Domain domain_;
  int iterations_;
  Expectation official_, fresh_;
};

}  // namespace

bool measure(beeline::World& world, const Options& options) {
  Session session(world, options);
  return std::ranges::count_if(options.methods, [&](const MethodInfo& info) { return !session.run(info); }) == 0;
}

}  // namespace himeno
