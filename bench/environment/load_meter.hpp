// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Energy of a load that runs for seconds on all ranks; the meter's window lies inside the load.

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "beeline/energy/meter.hpp"
#include "beeline/host/world.hpp"
#include "environment/statistics.hpp"

namespace beeline::bench {

/// The measurement of one load.
struct MeteredLoad {
  energy::Measured measured;  ///< measured by the leader, as is `power`
  std::uint64_t runs = 0;
  double seconds = 0;                 ///< of all runs together; the window lies inside them
  double cpu_seconds = 0;             ///< of all ranks' processes
  std::vector<energy::Sample> power;  ///< from before the window on; see `sample_power`
};

/// The windows of one load, and the idle power before the first and after the last window.
struct MeteredWindows {
  energy::Measured idle_before, idle_after;
  std::vector<MeteredLoad> loads;
};

/// Throws invalid_argument unless the window is at least 5 s shorter than the deadline: other ranks wait for its end.
void check_window(std::int64_t window_ns, const Config& config);

/// Meters the machine of rank 0: the ranks' GPUs, CPUs and DRAM. Only rank 0 has the meter.
class LoadMeter {
 public:
  /// Collective. Meters idle power first. Throws what `check_window` does.
  LoadMeter(World& world, std::int64_t window_ns);

  /// Sets the length of later windows; not longer than the first.
  void set_window(std::int64_t window_ns) { window_ns_ = window_ns; }
  /// From now on, loads also record power over time.
  void sample_power();
  /// Collective. Meters idle power, at most some seconds after a load; all ranks sleep. Returns the leader's result, as
  /// `idle` does.
  const energy::Measured& meter_idle();
  /// The result of the last `meter_idle`.
  [[nodiscard]] const energy::Measured& idle() const { return idle_; }
  /// Collective. Calls `work`, which is collective and takes far less time than the window, first for a warm-up and
  /// then until the window is over. The window starts again while the power of its second half differs from that of the
  /// whole. It is repeated once if it lacks a component that an earlier load's window knew: a counter was read too
  /// late.
  [[nodiscard]] MeteredLoad run(const std::function<void()>& work);

  /// Joules of a run, idle power included, of the known components; none if none is known.
  [[nodiscard]] static std::optional<double> joules(const MeteredLoad& load);
  /// Joules of a run over one or more windows, idle power included; none if a window has none.
  [[nodiscard]] static std::optional<Figure> joules(const std::vector<MeteredLoad>& loads);
  /// The record of the leader's windows. Contains, for each of the `units` in a run: joules by component, with idle
  /// power and above it (null if the difference is within its error), or the reason why there are none; their errors;
  /// watts, CPU cores, how the host waits, the GPUs' state; for each window [seconds of a unit, watts]; for the last
  /// window also `power`, by component a list of [seconds, watts].
  [[nodiscard]] nlohmann::ordered_json record(const MeteredWindows& windows, double units) const;
  /// Why no component's energy is known.
  [[nodiscard]] static std::string reason(const MeteredLoad& load);

 private:
  [[nodiscard]] MeteredLoad run_once(const std::function<void()>& work);
  [[nodiscard]] std::uint64_t from_leader(std::uint64_t value) const;
  [[nodiscard]] double cpu_seconds() const;
  World& world_;
  std::int64_t window_ns_;
  std::vector<std::string> gpus_;         ///< of the ranks, without duplicates
  std::unique_ptr<energy::Meter> meter_;  ///< the leader's
  energy::Measured idle_;
  std::ptrdiff_t most_known_ = 0;  ///< the leader's: kinds of components that a load's window knew
};

}  // namespace beeline::bench
