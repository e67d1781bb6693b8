// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Joules of a load that runs for seconds on all ranks, with the meter's window inside it.

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

/// A window of a load.
struct MeteredLoad {
  energy::Measured measured;  ///< the leader's, as what follows
  std::uint64_t runs = 0;
  double seconds = 0;                 ///< of all runs; the window is inside them
  double cpu_seconds = 0;             ///< of all ranks' processes
  std::vector<energy::Sample> power;  ///< from before the window on; see `sample_power`
};

/// The windows of one load, and the idle power before the first and behind the last.
struct MeteredWindows {
  energy::Measured idle_before, idle_after;
  std::vector<MeteredLoad> loads;
};

/// Throws invalid_argument for a window that is not 5 s shorter than the deadline, where other ranks wait for its end.
void check_window(std::int64_t window_ns, const Config& config);

/// Rank 0 has the meter, of its machine: the ranks' GPUs, CPUs and DRAM.
class LoadMeter {
 public:
  /// Collective. Meters idle power first. Throws what `check_window` does.
  LoadMeter(World& world, std::int64_t window_ns);

  /// For the windows to come; not longer than the first.
  void set_window(std::int64_t window_ns) { window_ns_ = window_ns; }
  /// From now on loads have their power over time.
  void sample_power();
  /// Collective. Meters idle power, some seconds after a load at most; all ranks sleep. The leader's, as `idle`.
  const energy::Measured& meter_idle();
  /// What was metered last while all ranks slept.
  [[nodiscard]] const energy::Measured& idle() const { return idle_; }
  /// Collective. Calls `work`, which is collective and takes far less than the window, for a while, and then until the
  /// window is over. The window begins again while its second half draws another power than the whole.
  [[nodiscard]] MeteredLoad run(const std::function<void()>& work);

  /// Joules of a run, idle power included, of the components that are known; none where none is.
  [[nodiscard]] static std::optional<double> joules(const MeteredLoad& load);
  /// Joules of a run of at least one window, idle power included; none where a window has none.
  [[nodiscard]] static std::optional<Figure> joules(const std::vector<MeteredLoad>& loads);
  /// Of the leader's windows: joules for each of the units that a run consists of, by component, with idle power and
  /// above it (null where the difference is within its error), or the reason; their errors; watts, CPU cores, how the
  /// host waits, the GPUs' state; of each window [seconds of a unit, watts]; of the last also `power`, by component a
  /// list of [seconds, watts].
  [[nodiscard]] nlohmann::ordered_json record(const MeteredWindows& windows, double units) const;
  /// Why no component is known.
  [[nodiscard]] static std::string reason(const MeteredLoad& load);

 private:
  [[nodiscard]] std::uint64_t from_leader(std::uint64_t value) const;
  [[nodiscard]] double cpu_seconds() const;
  World& world_;
  std::int64_t window_ns_;
  std::vector<std::string> gpus_;         ///< of the ranks, each once
  std::unique_ptr<energy::Meter> meter_;  ///< the leader's
  energy::Measured idle_;
};

}  // namespace beeline::bench
