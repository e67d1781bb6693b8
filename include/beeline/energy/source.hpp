// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Sources of energy values: counters of GPUs and CPUs, and substitutes for tests.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace beeline::energy {

enum class Kind { gpu, cpu, dram };

[[nodiscard]] const char* name(Kind kind) noexcept;

/// The component whose energy a source counts.
struct Component {
  Kind kind = Kind::gpu;
  std::string name;                    ///< gpu0, cpu0, dram0; only the kind if the component cannot be measured
  std::string device;                  ///< a GPU's UUID, a powercap zone
  std::int64_t tick_ns = 0;            ///< time between two advances of the counter
  std::optional<double> range_joules;  ///< the counter wraps to 0 at this value; no value: it never wraps
  double most_watts = 10'000;          ///< a counter that advances faster than this has jumped
};

/// One reading of a counter. A missing value has a reason.
struct Reading {
  std::optional<double> joules;  ///< the counter's value, which may start anywhere
  std::optional<double> watts;   ///< present power, if the device reports it beside the counter
  std::string reason;            ///< why there are no joules
};

/// A counter of one component.
class Source {
 public:
  explicit Source(Component component) : component_(std::move(component)) {}
  virtual ~Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  [[nodiscard]] const Component& component() const { return component_; }
  /// Reads the counter. Does not throw: a failure becomes the reading's reason.
  ///   now_ns  the meter's clock
  [[nodiscard]] virtual Reading read(std::int64_t now_ns) = 0;
  /// Present power without the counter, if that is fast to read; no value if only `read` returns the power.
  [[nodiscard]] virtual std::optional<double> watts() { return std::nullopt; }

 private:
  Component component_;
};

using Sources = std::vector<std::unique_ptr<Source>>;

/// The sources of this machine: GPUs by NVML, CPU packages and DRAM by RAPL. A kind that cannot be measured has a
/// source whose readings give the reason.
///   gpus      UUIDs; empty: all GPUs that NVML lists
///   powercap  the folder of the kernel's energy counters; empty: BEELINE_POWERCAP
[[nodiscard]] Sources machine_sources(const std::vector<std::string>& gpus = {}, const std::string& powercap = {});

/// GPUs by NVML's total-energy counter and its instantaneous power. NVML is opened at run time.
[[nodiscard]] Sources gpu_sources(const std::vector<std::string>& gpus,
                                  const std::string& library = "libnvidia-ml.so.1");

/// CPU packages and DRAM by RAPL, which the operating system reports in its powercap folder.
[[nodiscard]] Sources rapl_sources(const std::string& powercap);

/// A substitute for a counter: `reading` returns its value at a time.
[[nodiscard]] std::unique_ptr<Source> synthetic_source(Component component,
                                                       std::function<Reading(std::int64_t now_ns)> reading);

/// A counter that cannot be read: each reading has the reason.
[[nodiscard]] std::unique_ptr<Source> unreadable_source(Component component, std::string reason);

/// Replays the readings of a record: returns at each time the last reading that is not later.
///   readings  pairs of time and reading, in ascending order of time; not empty
[[nodiscard]] std::unique_ptr<Source> replay_source(Component component,
                                                    std::vector<std::pair<std::int64_t, Reading>> readings);

}  // namespace beeline::energy
