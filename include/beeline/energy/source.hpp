// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Where joules come from: counters of GPUs and CPUs, and what stands for them.

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

/// What a source counts.
struct Component {
  Kind kind = Kind::gpu;
  std::string name;                    ///< gpu0, cpu0, dram0; the kind alone where there is no source
  std::string device;                  ///< a GPU's UUID, a powercap zone
  std::int64_t tick_ns = 0;            ///< how often the counter advances
  std::optional<double> range_joules;  ///< the counter starts again from 0 here; none: it never does
  double most_watts = 10'000;          ///< a counter that advances faster than this has jumped
};

/// One look at a counter. What is missing has a reason.
struct Reading {
  std::optional<double> joules;  ///< the counter, from any start
  std::optional<double> watts;   ///< power at this moment, where the device tells it beside the counter
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
  /// Does not throw: what goes wrong is the reading's reason.
  ///   now_ns  the meter's clock
  [[nodiscard]] virtual Reading read(std::int64_t now_ns) = 0;
  /// Power at this moment without the counter, where that is quick; none: only `read` tells it.
  [[nodiscard]] virtual std::optional<double> watts() { return std::nullopt; }

 private:
  Component component_;
};

using Sources = std::vector<std::unique_ptr<Source>>;

/// What this machine has: GPUs by NVML, CPU packages and DRAM by RAPL. A kind without a source has one that says why.
///   gpus      UUIDs; empty: all that NVML knows
///   powercap  the folder of the kernel's energy counters; empty: BEELINE_POWERCAP
[[nodiscard]] Sources machine_sources(const std::vector<std::string>& gpus = {}, const std::string& powercap = {});

/// GPUs by NVML's total-energy counter, opened at run time, with the instant power beside it.
[[nodiscard]] Sources gpu_sources(const std::vector<std::string>& gpus,
                                  const std::string& library = "libnvidia-ml.so.1");

/// CPU packages and DRAM, as the kernel's powercap folder shows RAPL.
[[nodiscard]] Sources rapl_sources(const std::string& powercap);

/// Stands for a counter: `reading` says what it shows at a time.
[[nodiscard]] std::unique_ptr<Source> synthetic_source(Component component,
                                                       std::function<Reading(std::int64_t now_ns)> reading);

/// Shows the readings of a record again: at each time the last one that is not later.
///   readings  with their times, ascending; not empty
[[nodiscard]] std::unique_ptr<Source> replay_source(Component component,
                                                    std::vector<std::pair<std::int64_t, Reading>> readings);

}  // namespace beeline::energy
