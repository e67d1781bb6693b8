// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The accumulated energy of a source's counter, and its faults.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "beeline/energy/meter.hpp"
#include "beeline/energy/source.hpp"

namespace beeline::energy {

class Counter {
 public:
  using Mark = Meter::Window::Mark;

  explicit Counter(std::unique_ptr<Source> source) : source_(std::move(source)) {}

  [[nodiscard]] const Component& component() const { return source_->component(); }
  void read(const Clock& clock);
  /// The energy and faults up to the last reading.
  [[nodiscard]] Mark mark() const;
  /// Number of times that the counter has advanced.
  [[nodiscard]] std::uint64_t ticks() const { return ticks_; }
  /// Whether the energy is known only at long ticks.
  [[nodiscard]] bool has_long_ticks() const { return component().tick_ns >= 5'000'000; }
  /// Whether the last reading gave joules that are consistent with the readings before.
  [[nodiscard]] bool is_good() const { return fault_.empty(); }
  /// The last fault.
  [[nodiscard]] const std::string& last_fault() const { return last_fault_; }
  [[nodiscard]] Sample sample(std::size_t index, std::int64_t since_ns) const;
  [[nodiscard]] std::optional<double> quick_watts() { return source_->watts(); }

 private:
  ///   raw  the counter's value at a time from `now_ns` to `end_ns`: between them the thread may lose its core
  void advance(double raw, std::int64_t now_ns, std::int64_t end_ns);
  void fail(std::string fault);
  std::unique_ptr<Source> source_;
  std::optional<double> raw_;  ///< the counter's value at the last reading
  std::optional<double> watts_, slope_;
  double joules_ = 0;
  std::int64_t read_ns_ = 0;  ///< when the last reading began
  std::int64_t ticked_ns_ = 0, uncertain_ns_ = 0;
  std::uint64_t ticks_ = 0, faults_ = 0;
  std::string fault_, last_fault_;
};

}  // namespace beeline::energy
