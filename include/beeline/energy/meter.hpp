// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The meter: joules of a window, and power over time.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "beeline/energy/source.hpp"

namespace beeline::energy {

/// How to treat a window that is too short for a counter, which measures energy in whole ticks only.
enum class ShortWindow {
  refuse,  ///< the component has no joules; `reason` names a sufficient length
  widen    ///< the window is extended to the next tick; `notice` says so
};

/// Largest permitted error, as a share of the joules: with a larger error a window is too short for a counter.
inline constexpr double largest_error = 0.02;

/// The energy of one component in a window.
struct ComponentEnergy {
  Component component;
  std::optional<double> joules;
  std::optional<double> watts;  ///< average
  std::optional<double> error;  ///< bound, as a share of the joules
  double seconds = 0;           ///< length of the window to which the joules belong
  std::string reason;           ///< why there are no joules
  std::string notice;           ///< how the window was changed
};

/// CPU time and sleep states in a window; present if the operating system reports them.
struct CpuUse {
  double process_seconds = 0;                   ///< CPU time of this process, and of its children that have ended
  std::optional<double> machine_seconds;        ///< busy time, summed over the CPUs of the machine
  std::map<std::string, double> sleep_seconds;  ///< for each sleep state by name, summed over CPUs
  std::string reason;                           ///< why a value is missing
};

/// The result of a window.
struct Measured {
  double seconds = 0;
  std::vector<ComponentEnergy> components;
  CpuUse cpu;
  /// The sum over the components of a kind; no value if one of them is missing.
  [[nodiscard]] std::optional<double> joules(Kind kind) const;
  /// The sum over all kinds with a value; no value if no kind has one.
  [[nodiscard]] std::optional<double> joules() const;
};

/// One point of a component's power over time.
struct Sample {
  std::size_t component = 0;     ///< index in Meter::components
  std::int64_t time_ns = 0;      ///< since the meter was made
  std::optional<double> joules;  ///< since the meter was made; missing in some samples of slow counters
  std::optional<double> watts;   ///< as reported by the device, otherwise the slope of the counter
  std::string reason;            ///< why joules are missing
};

/// The clock of a meter; tests pass their own.
struct Clock {
  std::function<std::int64_t()> now_ns;
  std::function<void(std::int64_t)> sleep_ns;
  [[nodiscard]] static Clock steady();
};

/// Measures the energy of components by their sources. Any thread may call; a process may have several meters.
class Meter {
 public:
  explicit Meter(Sources sources = machine_sources(), Clock clock = Clock::steady());
  ~Meter();
  Meter(const Meter&) = delete;
  Meter& operator=(const Meter&) = delete;

  [[nodiscard]] std::vector<Component> components() const;

  class Window;
  /// Begins a window. Blocks until every counter has ticked, which takes about 100 ms with GPUs; start the work after
  /// it returns. Windows may overlap.
  [[nodiscard]] Window start();
  /// Ends the window now, and blocks until every counter has ticked once more.
  [[nodiscard]] Measured stop(const Window& window, ShortWindow short_window = ShortWindow::refuse);

  /// Starts a thread that samples all components every `period_ns`. Counters that are slow to read are read less often,
  /// so that they take less than half a percent of a core. Windows longer than a counter's range need this thread.
  void sample_every(std::int64_t period_ns);
  /// The samples since the last call. If samples are not taken in time, the oldest are dropped (dropped_samples).
  [[nodiscard]] std::vector<Sample> take_samples();
  [[nodiscard]] std::uint64_t dropped_samples() const;
  /// CPU time that the sampling thread has used, seconds.
  [[nodiscard]] double sampling_seconds() const;

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

/// The beginning of a measurement; made by Meter::start, for that meter.
class Meter::Window {
 public:
  struct Mark {
    double joules = 0;
    std::int64_t time_ns = 0, uncertain_ns = 0;
    std::uint64_t faults = 0;
    bool stands_still = false;
  };

 private:
  friend class Meter;
  std::int64_t begin_ns_ = 0;
  std::vector<Mark> marks_;
  CpuUse cpu_;
};

}  // namespace beeline::energy
