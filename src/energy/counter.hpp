// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What a source's counter has counted, and what went wrong with it.

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
  void read(std::int64_t now_ns);
  /// What has been counted up to the last reading.
  [[nodiscard]] Mark mark() const;
  /// How often the counter has advanced.
  [[nodiscard]] std::uint64_t ticks() const { return ticks_; }
  /// Its energy is known to whole ticks only, and they are long.
  [[nodiscard]] bool has_long_ticks() const { return component().tick_ns >= 5'000'000; }
  /// Whether the last reading had joules that follow from those before.
  [[nodiscard]] bool is_good() const { return fault_.empty(); }
  /// What went wrong last.
  [[nodiscard]] const std::string& last_fault() const { return last_fault_; }
  [[nodiscard]] Sample sample(std::size_t index, std::int64_t since_ns) const;
  [[nodiscard]] std::optional<double> quick_watts() { return source_->watts(); }

 private:
  void advance(double raw, std::int64_t now_ns);
  void fail(std::string fault);
  std::unique_ptr<Source> source_;
  std::optional<double> raw_;  ///< the last reading's counter
  std::optional<double> watts_, slope_;
  double joules_ = 0;
  std::int64_t read_ns_ = 0, ticked_ns_ = 0, uncertain_ns_ = 0;
  std::uint64_t ticks_ = 0, faults_ = 0;
  std::string fault_, last_fault_;
};

}  // namespace beeline::energy
