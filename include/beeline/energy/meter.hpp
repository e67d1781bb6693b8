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

/// What to do with a window that is too short for a counter, which knows its energy to whole ticks only.
enum class ShortWindow {
  refuse,  ///< its joules are missing, with the length that would do
  widen    ///< its joules are those up to the next tick, with a notice
};

/// A window's error may be this share of its joules.
inline constexpr double largest_error = 0.02;

/// The energy of one component in a window.
struct ComponentEnergy {
  Component component;
  std::optional<double> joules;
  std::optional<double> watts;  ///< average
  std::optional<double> error;  ///< bound, as a share of the joules
  double seconds = 0;           ///< of the window that the joules belong to
  std::string reason;           ///< why there are no joules
  std::string notice;           ///< what was done to the window
};

/// CPU time and sleep states in a window; always there, where the kernel shows them.
struct CpuUse {
  double process_seconds = 0;                   ///< of this process, and of children that have ended
  std::optional<double> machine_seconds;        ///< all CPUs of the machine, busy
  std::map<std::string, double> sleep_seconds;  ///< by the name of the sleep state, sum over CPUs
  std::string reason;                           ///< why something of these is missing
};

/// What a window held.
struct Measured {
  double seconds = 0;
  std::vector<ComponentEnergy> components;
  CpuUse cpu;
  /// The sum over components of a kind; none where one of them is missing.
  [[nodiscard]] std::optional<double> joules(Kind kind) const;
  /// The sum over kinds that are known; none where none is.
  [[nodiscard]] std::optional<double> joules() const;
};

/// One point of a component's power over time.
struct Sample {
  std::size_t component = 0;  ///< index in Meter::components
  std::int64_t time_ns = 0;   ///< since the meter was made
  std::optional<double>
      joules;                   ///< counted since the meter was made; not at each sample of a counter that reads slowly
  std::optional<double> watts;  ///< as the device tells it, otherwise the counter's slope
  std::string reason;           ///< why joules are missing
};

/// The time that a meter goes by; tests have their own.
struct Clock {
  std::function<std::int64_t()> now_ns;
  std::function<void(std::int64_t)> sleep_ns;
  [[nodiscard]] static Clock steady();
};

/// Meters components by their sources. Any thread may call; a process may have several.
class Meter {
 public:
  explicit Meter(Sources sources = machine_sources(), Clock clock = Clock::steady());
  ~Meter();
  Meter(const Meter&) = delete;
  Meter& operator=(const Meter&) = delete;

  [[nodiscard]] std::vector<Component> components() const;

  class Window;
  /// Blocks until every counter has ticked, 100 ms with GPUs; the work may begin then. Windows may overlap.
  [[nodiscard]] Window start();
  /// Ends the window now, and blocks until every counter has ticked once more.
  [[nodiscard]] Measured stop(const Window& window, ShortWindow short_window = ShortWindow::refuse);

  /// Samples all components every `period_ns` in a thread, from now on. Counters that take long to read are read as
  /// seldom as keeps their cost below half a percent of a core. Windows longer than a counter's range need it.
  void sample_every(std::int64_t period_ns);
  /// The samples since the last call. If they are not taken, the oldest are dropped (dropped_samples).
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
