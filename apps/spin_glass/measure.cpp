// SPDX-License-Identifier: Apache-2.0
#include "measure.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "common/metered.hpp"
#include "common/program.hpp"
#include "common/reference.hpp"
#include "common/sampling.hpp"
#include "serial.hpp"

namespace spin_glass {

namespace {

using apps::Json;
using apps::median;
using apps::Sample;

constexpr int samples = 3;
constexpr double seconds_of_a_sample = 0.1;
constexpr int most_sweeps = 1'000'000;
constexpr int phases = 1 + 2 * samples + 1;  // warm-up, runs with and without communication, verification

/// Bytes that the update of a spin moves at least: the spin, its neighbour of the other colour (each is read by six
/// sites, once from memory), and six couplings are read; the spin is written.
constexpr double bytes_of_update = 3 * components * sizeof(float) + 6 * sizeof(float);

/// Sweeps that are compared with the serial reference.
int sweeps_to_verify(const Size& size) {
  constexpr std::uint64_t fewest = 3, most = 20, updates = std::uint64_t{1} << 23;
  return static_cast<int>(std::clamp<std::uint64_t>(updates / size.sites(), fewest, most));
}

/// Measurements of one method.
struct Outcome {
  int sweeps = 0;
  std::vector<Sample> with, without;
  Totals before{}, after{};
  std::optional<bool> has_bits;  ///< whether the spins have the bits of the reference
};

/// Measures methods on one lattice.
class Session {
 public:
  Session(beeline::World& world, const Options& options, const Size& size)
      : world_(world), options_(options), metered_(world, options.energy_seconds),
        copy_bandwidth_(apps::copy_bandwidth(world)), domain_(world, size, options.model) {
    if (!options.verify || world.rank() != 0) return;
    Serial reference(size, options.model, apps::hardware_threads());
    reference.advance(sweeps_to_verify(size));
    expected_ = apps::checksum(reference.field());
  }

  /// Collective. Returns whether the result was right.
  bool run(const MethodInfo& info) {
    apps::Progress progress(world_, info.name, phases);
    const std::unique_ptr<Method> method = info.make(domain_);
    Outcome outcome;
    outcome.sweeps = options_.sweeps > 0 ? options_.sweeps : choose_sweeps(*method);
    progress.advance();
    domain_.reset();
    outcome.before = domain_.totals();
    time(*method, outcome, progress);
    if (options_.verify) outcome.has_bits = compare(*method);
    progress.advance();
    print_result(info, *method, outcome);
    return is_right(outcome);
  }

 private:
  /// Collective. Also warms up.
  int choose_sweeps(Method& method) {
    constexpr int trial = 4;
    domain_.reset();
    method.run(trial, true);
    const double seconds = apps::timed_run(world_, [&] { method.run(trial, true); }).seconds / trial;
    return apps::runs_of_sample(seconds_of_a_sample, seconds, trial, most_sweeps);
  }

  void time(Method& method, Outcome& outcome, apps::Progress& progress) {
    for (int sample = 0; sample < samples; ++sample) {
      domain_.reset();
      outcome.with.push_back(apps::timed_run(world_, [&] { method.run(outcome.sweeps, true); }));
      progress.advance();
    }
    outcome.after = domain_.totals();
    for (int sample = 0; sample < samples; ++sample) {
      domain_.reset();
      outcome.without.push_back(apps::timed_run(world_, [&] { method.run(outcome.sweeps, false); }));
      progress.advance();
    }
  }

  /// Collective. Every rank returns the same.
  bool compare(Method& method) {
    domain_.reset();
    method.run(sweeps_to_verify(domain_.size()), true);
    const std::vector<float> field = domain_.gather();
    const bool mine = !expected_ || apps::checksum(field) == *expected_;
    return world_.allreduce(std::uint32_t{mine ? 1u : 0u}, beeline::Reduction::minimum) == 1;
  }

  [[nodiscard]] bool conserves() const { return options_.model.heat_bath == 0; }
  [[nodiscard]] static double drift_of(const Outcome& outcome) {
    return std::abs(outcome.after.energy - outcome.before.energy);
  }
  [[nodiscard]] bool is_right(const Outcome& outcome) const {
    const double most = tolerance(outcome.sweeps);
    return outcome.has_bits.value_or(true) && outcome.after.length_error <= most &&
           (!conserves() || drift_of(outcome) <= most);
  }

  void print_result(const MethodInfo& info, Method& method, const Outcome& outcome) {
    const Sample with = median(outcome.with), without = median(outcome.without);
    const double seconds = with.seconds / outcome.sweeps;
    const auto sites = static_cast<double>(domain_.size().sites());
    Json line = apps::result_line("spin_glass", info, world_);
    line.update({{"size", {domain_.size().x, domain_.size().y, domain_.size().z}},
                 {"sweeps", outcome.sweeps},
                 {"seconds", seconds},
                 {"picoseconds_per_update", seconds / sites * 1e12},
                 {"updates_per_second", sites / seconds},
                 {"communication_share", (with.seconds - without.seconds) / with.seconds},
                 {"cpu_seconds", with.cpu_seconds / outcome.sweeps},
                 {"energy_of_site", outcome.after.energy},
                 {"length_error", outcome.after.length_error}});
    line["energy_change"] = conserves() ? Json(drift_of(outcome)) : Json();
    line["bound_share"] = copy_bandwidth_ ? Json(sites / seconds * bytes_of_update / *copy_bandwidth_) : Json();
    line["copy_bytes_per_second"] = copy_bandwidth_ ? Json(*copy_bandwidth_) : Json();
    line["verified"] = options_.verify ? Json(is_right(outcome)) : Json();
    line["verified_sweeps"] = options_.verify ? Json(sweeps_to_verify(domain_.size())) : Json();
    line["samples_seconds"] = apps::samples_seconds(outcome.with, outcome.sweeps);
    metered_.add(line, "updates_per_joule", sites * outcome.sweeps, [&] {
      domain_.reset();
      method.run(outcome.sweeps, true);
    });
    apps::print_line(world_.rank(), line);
  }

  beeline::World& world_;
  const Options& options_;
  apps::Metered metered_;
  std::optional<double> copy_bandwidth_;  ///< measured before the lattice takes the memory
  Domain domain_;
  std::optional<std::uint64_t> expected_;  ///< on rank 0: checksum of the reference's spins
};

}  // namespace

double tolerance(int sweeps) {
  constexpr double rounding = 1.0 / (1 << 23);
  return 16 * rounding * (1 + std::sqrt(sweeps));
}

bool measure(beeline::World& world, const Options& options) {
  return apps::measure_on<Session>(world, options, options.sizes);
}

}  // namespace spin_glass
