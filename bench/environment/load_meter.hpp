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

namespace beeline::bench {

/// What ran while the window was open, and a little longer.
struct MeteredLoad {
  energy::Measured idle;      ///< right before; the leader's, as what follows
  energy::Measured measured;  ///< of the window
  std::uint64_t runs = 0;
  double seconds = 0;                 ///< of all runs
  double cpu_seconds = 0;             ///< of all ranks' processes
  std::vector<energy::Sample> power;  ///< while it ran; see `sample_power`
};

/// Throws invalid_argument for a window that is not 5 s shorter than the deadline, where other ranks wait for its end.
void check_window(std::int64_t window_ns, const Config& config);

/// Rank 0 has the meter, of its machine: the ranks' GPUs, CPUs and DRAM.
class LoadMeter {
 public:
  /// Collective. Meters idle power first, for as long: all ranks sleep. Throws what `check_window` does.
  LoadMeter(World& world, std::int64_t window_ns);

  /// From now on loads have their power over time.
  void sample_power();
  /// Collective. Calls `work`, which is collective and takes far less than the window, until the window is over.
  [[nodiscard]] MeteredLoad run(const std::function<void()>& work);
  /// Collective. Until the GPUs' power is near that of idling again, some seconds at most; all ranks sleep. What idles
  /// at the end is what the next load is compared with.
  void cool_down();

  /// Joules of a run, idle power included, of the components that are known; none where none is.
  [[nodiscard]] static std::optional<double> joules(const MeteredLoad& load);
  /// Of the leader's loads: joules for each of the units that a run consists of, by component, with idle power and
  /// above it (null where the difference is within the error of the two), or the reason; watts, CPU cores, how the host
  /// waits, the GPUs' state; of the load in the middle also `power`, by component a list of [seconds, watts].
  [[nodiscard]] nlohmann::ordered_json record(const std::vector<MeteredLoad>& loads, double units) const;
  /// Why no component is known.
  [[nodiscard]] static std::string reason(const MeteredLoad& load);

 private:
  [[nodiscard]] std::uint64_t from_leader(std::uint64_t value) const;
  [[nodiscard]] double cpu_seconds() const;
  [[nodiscard]] nlohmann::ordered_json component(energy::Kind kind, const std::vector<MeteredLoad>& loads,
                                                 double units) const;
  World& world_;
  std::int64_t window_ns_;
  std::vector<std::string> gpus_;         ///< of the ranks, each once
  std::unique_ptr<energy::Meter> meter_;  ///< the leader's
  energy::Measured idle_;                 ///< the last
  double cold_watts_ = 0;                 ///< of the GPUs, idle before any load
};

}  // namespace beeline::bench
